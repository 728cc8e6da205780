"""What a refusal looks like: one line of a ValueError."""

import pytest


def refused(call, *args, **kwargs) -> str:
    """The one-line message with which the call is refused."""
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as info:
        call(*args, **kwargs)
    return str(info.value)
