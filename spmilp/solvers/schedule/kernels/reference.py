"""Named tuples passed by reference between compiled functions.

numba passes a named tuple by value, and each array in it as seven numbers or more: a schedule state
would be two hundred arguments of every function. By reference it is one address. By value, a pass
of 10,000 tasks took 1.4 times as long, and compiling it 1.5 times. numba's own structures
(``structref``) need its reference counts, which ``kernel`` does without.

For numba a reference is a type of its own: a pointer (:class:`_PointerModel`) that ``by_reference``
makes from a tuple, and whose attributes have the types (:class:`_FieldTypes`) and the values
(:func:`_load_field`) of the tuple's fields.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_builtin, lower_getattr_generic, register_model, type_callable

T = TypeVar("T")


def by_reference(fields: T) -> T:
    """Return a reference to a named tuple that is good until the calling function returns.

    Plain Python passes everything by reference, so there it is the tuple itself.
    """
    return fields


class Reference(types.Type):
    """The address of a named tuple of type ``fields``."""

    def __init__(self, fields: Any) -> None:
        self.fields = fields
        super().__init__(name=f"Reference({fields.instance_class.__name__})")

    @property
    def key(self) -> Any:
        """What tells references apart: tuples of one class may hold arrays of several types."""
        return self.fields

    def position(self, name: str) -> int:
        """Return which field of the tuple has a name."""
        return int(self.fields.fields.index(name))


@register_model(Reference)
class _PointerModel(models.PrimitiveModel):
    """In machine code a reference is a pointer to the tuple."""

    def __init__(self, manager: Any, reference: Reference) -> None:
        target = manager.lookup(reference.fields).get_value_type()
        super().__init__(manager, reference, target.as_pointer())


@type_callable(by_reference)
def _type_of_reference(context: Any) -> Callable[[Any], Reference]:
    def of(fields: Any) -> Reference:
        return Reference(fields)

    return of


@lower_builtin(by_reference, types.BaseTuple)
def _make_reference(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Put the tuple on the stack of the calling function, and return where."""
    return cgutils.alloca_once_value(builder, arguments[0])


@infer_getattr
class _FieldTypes(AttributeTemplate):
    """The types of a reference's attributes."""

    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:
        """Return the type of a field: tuples inside a tuple are references too."""
        if name not in reference.fields.fields:
            return None
        field = reference.fields[reference.position(name)]
        return Reference(field) if isinstance(field, types.BaseNamedTuple) else field


@lower_getattr_generic(Reference)
def _load_field(context: Any, builder: Any, reference: Reference, address: Any, name: str) -> Any:
    """Return the value of a field; of a tuple inside the tuple, its address."""
    position = reference.position(name)
    place = cgutils.gep_inbounds(builder, address, 0, position)
    field = reference.fields[position]
    if isinstance(field, types.BaseNamedTuple):
        return place
    return impl_ret_borrowed(context, builder, field, builder.load(place))
