"""Where numbers come from: device, cores and versions."""

import os
import platform
from typing import Any


def environment() -> dict[str, Any]:
    """Device and versions, for the record of an experiment or a benchmark."""
    import jax
    import jaxlib
    import numpy

    import jgram

    return {
        "device": f"{jax.devices()[0].device_kind}, {os.cpu_count()} CPU cores",
        "versions": {
            "python": platform.python_version(),
            "jgram": jgram.__version__,
            "jax": jax.__version__,
            "jaxlib": jaxlib.version.__version__,
            "numpy": numpy.__version__,
        },
    }
