"""What is tried, and how large: on a device, and on a program that plays one."""

from typing import NamedTuple


class Test(NamedTuple):
    """A test of a program, by its name there."""

    program: str
    name: str
    seconds_max: float


class Trial(NamedTuple):
    """One run's models and amounts."""

    # Of 1.1 billion parameters.
    decoder: dict
    # With the dimensions of all-MiniLM-L6-v2.
    encoder: dict
    tests: dict
    streams: tuple
    prompt: int
    decode: int
    items: int
    longest: int
    # Of products by themselves, and bytes of the matrices that take turns in them: more than caches keep.
    rows: tuple
    matrix_bytes: int
    array_bytes: int
    rounds: int
    product_rounds: int


DEVICE = Trial(
    decoder={
        "hidden": 2048,
        "inner": 5632,
        "layers": 22,
        "heads": 32,
        "kv_heads": 4,
        "vocabulary": 32000,
        "context": 2048,
        "untied": True,
    },
    encoder={"hidden": 384, "inner": 1536, "layers": 6, "heads": 12, "vocabulary": 30522, "positions": 512},
    tests={
        "operations": Test("kernels", "a_device_equals_the_definition", 120),
        "runs": Test("kernels", "a_devices_runs_equal_a_processors", 90),
        "run twice": Test("kernels", "a_device_makes_the_same_run_twice", 60),
        "graphs": Test("replays", "a_device_that_is_given_graphs_gives_the_same_bits", 60),
        "encoder": Test("models", "items_of_all_lengths_have_the_processors_vectors", 90),
        "decoder": Test("models", "a_generation_and_its_audit_are_the_processors", 150),
        "generations": Test("models", "generations_that_share_a_device_are_as_if_each_were_alone", 180),
    },
    streams=(1, 8, 64),
    prompt=512,
    decode=64,
    items=2048,
    longest=128,
    rows=(1, 8, 16, 32, 64, 128, 512),
    matrix_bytes=128 << 20,
    array_bytes=1 << 30,
    rounds=3,
    product_rounds=50,
)

EMULATED = Trial(
    decoder={
        "hidden": 128,
        "inner": 160,
        "layers": 2,
        "heads": 4,
        "kv_heads": 2,
        "vocabulary": 400,
        "context": 256,
        "untied": True,
    },
    encoder={"hidden": 96, "inner": 160, "layers": 2, "heads": 3, "vocabulary": 400, "positions": 64},
    tests={
        "operations": Test("replays", "steps_come_again_behind_the_border_of_a_page", 120),
        "encoder": Test("models", "items_of_all_lengths_have_the_processors_vectors_on_an_emulated_device", 120),
        "decoder": Test("models", "a_generation_and_its_audit_are_the_processors_on_an_emulated_device", 120),
        "generations": Test("models", "generations_that_share_an_emulated_device_are_as_if_each_were_alone", 120),
    },
    streams=(1, 3),
    prompt=20,
    decode=3,
    items=8,
    longest=20,
    rows=(1, 40),
    matrix_bytes=1 << 10,
    array_bytes=1 << 12,
    rounds=1,
    product_rounds=2,
)
