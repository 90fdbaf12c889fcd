"""Arguments with which every bound can be called, shared by tests over all bounds."""

HEAD = {
    "value_21": 2.0,
    "value_spectral": 1.0,
    "query_key_21": 3.0,
    "input_norm": 1.0,
    "context_norm": 1.0,
    "epsilon": 0.5,
    "width": 64,
    "dimension": 64,
    "points": 30_000,
}
DEEP = {"query_key_spectral": 1.0, "output_21": 2.0, "output_spectral": 1.0, "readout_norm": 1.0, "layers": 2}
LINEAR = {"weight_norm": 1.0, "input_norm": 1.0, "epsilon": 0.1, "points": 1000}
VOLUMETRIC_HEAD = {name: HEAD[name] for name in ("value_spectral", "input_norm", "context_norm", "epsilon")}

CASES = {
    "linear-cover": LINEAR,
    "zhang-cover": LINEAR,
    "matrix-cover": LINEAR | {"outputs": 64},
    "head": HEAD,
    "heads": HEAD | {"heads": 4},
    "deep": HEAD | DEEP,
    "volumetric": {"parameters": 4096, "radius": 1.0, "epsilon": 0.01},
    "volumetric-head": VOLUMETRIC_HEAD | {"width": 8, "dimension": 16, "value_radius": 2.0, "query_key_radius": 3.0},
    "vc-cover": {"vc_dimension": 5, "points": 100},
    "pseudo-cover": {"pseudo_dimension": 5, "epsilon": 0.1, "points": 100},
    "fat-cover": {"fat_dimension": 5, "epsilon": 0.1, "points": 100},
    "rademacher": {"capacity": 10.0, "range": 1.0, "samples": 10**6},
    "generalization": {"rademacher": 0.1, "samples": 10_000},
    "margin": {"log_cover": 100.0, "empirical_error": 0.1, "samples": 10**6},
    "lower": {"context_length": 300, "support_size": 3},
}
