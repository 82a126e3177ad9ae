"""A value that an object works out when it is first asked for, and then keeps."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """What ``functools.cached_property`` is from Python 3.12 on, on 3.11 as well.

    There one lock per property, shared by all objects of the class, is held while the value is
    worked out: a table whose storage does not answer would stop all others of the process.
    Threads that ask at the same time may work the value out twice; the values are equal.
    """

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self._name = work_out.__name__
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> Self | T:
        if instance is None:
            return self
        kept: T = instance.__dict__.setdefault(self._name, self._work_out(instance))
        return kept
