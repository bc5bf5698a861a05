"""Streams a chat with OpenAI's official client, which knows nothing of what is behind the address.

Run by the Python that has it, with SURETY_GATEWAY and SURETY_API_KEY; prints one line of JSON for each part of the
answer, and one in the end.
"""

import json
import os
import sys
import time

import openai

model, text, max_tokens = sys.argv[1], sys.argv[2], int(sys.argv[3])
# A proxy of this machine knows nothing of the gateway.
http = openai.DefaultHttpxClient(trust_env=False)
client = openai.OpenAI(
    base_url=os.environ["SURETY_GATEWAY"], api_key=os.environ["SURETY_API_KEY"], max_retries=0, http_client=http
)
begun, first, receipt, usage = time.monotonic(), None, None, None
stream = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": text}],
    max_tokens=max_tokens,
    seed=7,
    stream=True,
    stream_options={"include_usage": True},
)
for part in stream:
    receipt = receipt or (getattr(part, "surety", None) or {}).get("receipt")
    usage = part.usage or usage
    for choice in part.choices:
        if choice.delta.content:
            first = first or time.monotonic()
            print(json.dumps({"event": "token", "text": choice.delta.content}), flush=True)
seconds = {"to_first_token": first and first - begun, "in_all": time.monotonic() - begun}
print(json.dumps({"event": "end", "receipt": receipt, "tokens": usage.completion_tokens, "seconds": seconds}))
