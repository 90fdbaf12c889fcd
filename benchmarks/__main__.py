"""All benchmarks, one after the other: `python -m benchmarks`."""

from benchmarks import (
    bit_transformer,
    checkpoint,
    classifier_step,
    construct,
    growth,
    learn,
    probe,
    reproduce,
    restarts,
    restarts_design,
    sharpness,
    spectrum,
    start,
    store,
    threshold_design,
    token_regression,
    torch_sharpness,
    workers,
)

for benchmark in (
    start,
    reproduce,
    classifier_step,
    growth,
    store,
    threshold_design,
    construct,
    checkpoint,
    token_regression,
    probe,
    restarts,
    restarts_design,
    bit_transformer,
    spectrum,
    sharpness,
    torch_sharpness,
    workers,
    learn,
):
    benchmark.main()
