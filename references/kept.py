"""A property that is worked out when it is first asked for and kept with its object."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    kept_property = cached_property
else:

    class kept_property:  # noqa: N801  (reads like `property`)
        """`functools.cached_property` without the lock that Python 3.11 makes for each and takes each time.

        What threads that ask at the same time work out is worked out by each, and is the same.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.name = function.__name__
            self.__doc__ = function.__doc__

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = instance.__dict__[self.name] = self.function(instance)
            return kept
