// What generated types let a dApp write, and what not: compiled by papi.test.mjs, never run.

import { surety } from "descriptors";
import type { PolkadotClient } from "polkadot-api";

export async function dapp(client: PolkadotClient, task: bigint, provider: string) {
  const api = client.getTypedApi(surety);
  const view = await api.view.TaskAuction.task(task);
  const model = await api.query.ModelRegistry.Models.getValue(view!.task.spec.model);
  // Names are text.
  const name: string = model!.manifest.name;
  const sources: string[] = view!.task.spec.sources;
  const { items, next } = await api.view.Billing.earnings(provider, undefined);
  const paid: bigint = items.reduce((sum, { amount }) => sum + amount, 0n);
  const more: bigint | undefined = next;
  const limit: bigint | undefined = await api.apis.TaskApi.price_limit(view!.task.cap, 3);

  // @ts-expect-error A task's number is a bigint.
  await api.view.TaskAuction.task("0");
  // @ts-expect-error There is no such view.
  await api.view.Billing.winnings(provider);
  return { name, sources, paid, more, limit };
}
