"""The input of a tool, read from its function: the JSON schema that the model sees, and the validation of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Final, Union, cast, get_args, get_origin, get_type_hints

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import ArgsKwargs

from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.faults import InvalidInputError, ToolConfigError, text_of_validation

_Parameter = inspect.Parameter
_REFUSED_KINDS: Final[dict[int, str]] = {
    _Parameter.POSITIONAL_ONLY: "positional-only (the model gives arguments by name)",
    _Parameter.VAR_POSITIONAL: "a `*` parameter (the model gives arguments by name)",
}
_NOT_AT_THE_TOP: Final = ("oneOf", "anyOf", "allOf")


class _InputSchema(GenerateJsonSchema):
    """Without the titles that pydantic makes from names: they cost tokens and say nothing."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


class FunctionInput:
    """The parameters of a function, less the one that takes the `ToolContext`.

    Attributes:
        context_parameter: the name of the parameter that takes the context, or None.
        schema: the JSON schema of the input, an object.
    """

    def __init__(self, function: Callable[..., Any], names: Mapping[str, Any]) -> None:
        """Read the signature. `names` are local names that annotations may use. Raises `ToolConfigError`."""
        self._title = title_of(function)
        hints = self._hints(function, names)
        parameters = list(_signature(function, self._title).parameters.values())
        self._refuse_odd(parameters, hints)
        self.context_parameter = self._context_of(parameters, hints)
        self._adapter = self._adapter_for([p for p in parameters if p.name != self.context_parameter], hints)
        self.schema = self._describe(function)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The validated arguments by name, defaults filled in. Raises `InvalidInputError`, worded for the model."""
        try:
            return self._adapter.validate_python(ArgsKwargs((), dict(given)))
        except ValidationError as error:
            raise InvalidInputError(text_of_validation(error)) from error

    def _hints(self, function: Callable[..., Any], names: Mapping[str, Any]) -> dict[str, Any]:
        target = function
        if not (inspect.isfunction(function) or inspect.ismethod(function)):
            target = cast("Callable[..., Any]", getattr(function, "func", type(function).__call__))
        try:
            return get_type_hints(target, localns=dict(names), include_extras=True)
        except NameError as error:
            raise ToolConfigError(
                f"An annotation of {self._title} cannot be read: {error}. Import the name at run time (not only under "
                "TYPE_CHECKING), before the function is declared."
            ) from error

    def _refuse_odd(self, parameters: list[_Parameter], hints: Mapping[str, Any]) -> None:
        for place, parameter in enumerate(parameters):
            if (refusal := _REFUSED_KINDS.get(int(parameter.kind))) is not None:
                raise ToolConfigError(f"The parameter `{parameter.name}` of {self._title} is {refusal}.")
            if place == 0 and parameter.name in {"self", "cls"} and parameter.name not in hints:
                raise ToolConfigError(
                    f"{self._title} is a method: its `{parameter.name}` would be asked of the model. "
                    "Declare the bound method instead: `tool(thing.method)`."
                )

    def _context_of(self, parameters: list[_Parameter], hints: Mapping[str, Any]) -> str | None:
        found = [p.name for p in parameters if is_context(hints.get(p.name))]
        if len(found) > 1:
            raise ToolConfigError(f"{self._title} takes more than one ToolContext: {', '.join(found)}. One is enough.")
        return found[0] if found else None

    def _adapter_for(self, parameters: list[_Parameter], hints: Mapping[str, Any]) -> TypeAdapter[dict[str, Any]]:
        def collect(**arguments: Any) -> dict[str, Any]:
            return arguments

        # pydantic reads these two: the function's own parameters, by name only, annotations resolved.
        keyword_only = [
            p.replace(
                kind=p.kind if p.kind is _Parameter.VAR_KEYWORD else _Parameter.KEYWORD_ONLY,
                annotation=hints.get(p.name, Any if p.annotation is p.empty else p.annotation),
            )
            for p in parameters
        ]
        collect.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
        collect.__annotations__ = {p.name: p.annotation for p in keyword_only}
        try:
            return TypeAdapter(collect)  # type: ignore[arg-type] # pydantic takes callables; the type form cannot say so
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise ToolConfigError(f"The parameters of {self._title} have no JSON schema: {error}") from error

    def _describe(self, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            schema = self._adapter.json_schema(schema_generator=_InputSchema)
        except PydanticUserError as error:
            raise ToolConfigError(f"The parameters of {self._title} have no JSON schema: {error}") from error
        properties: dict[str, dict[str, Any]] = schema.setdefault("properties", {})
        for name, text in parameter_texts(function).items():
            if name in properties:
                properties[name].setdefault("description", text)
        return schema


def title_of(function: Callable[..., Any]) -> str:
    """How a function is named in an error: with its module, so that one finds it."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', None) or type(function).__module__}.{name}"


def is_context(hint: Any) -> bool:
    """Whether an annotation is `ToolContext`, `ToolContext[Deps]`, optional or in `Annotated` too."""
    origin = get_origin(hint)
    if origin is Annotated:
        return is_context(get_args(hint)[0])
    if origin in {Union, UnionType}:
        return any(is_context(each) for each in get_args(hint))
    return (origin or hint) is ToolContext


def _signature(function: Callable[..., Any], title: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise ToolConfigError(f"{title} has no signature to read; wrap it in a function of your own.") from error


def described(function: Callable[..., Any]) -> str:
    """The description for the model: the docstring less its sections on parameters, results and errors."""
    parsed = _docstring(function)
    parts = [parsed.short_description, parsed.long_description] if parsed is not None else [_raw_docstring(function)]
    return "\n\n".join(part.strip() for part in parts if part and part.strip())


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring (Google, NumPy, Sphinx or Epydoc style) says of each parameter."""
    parsed = _docstring(function)
    if parsed is None:
        return {}
    return {each.arg_name: each.description for each in parsed.params if each.description}


def _raw_docstring(function: Callable[..., Any]) -> str:
    return inspect.getdoc(function) or ""


def _docstring(function: Callable[..., Any]) -> Any:
    import docstring_parser

    try:
        return docstring_parser.parse(_raw_docstring(function))
    except docstring_parser.ParseError:
        return None


def checked_schema(schema: Any, title: str) -> dict[str, Any]:
    """A schema given by hand, if the API takes it. Raises `ToolConfigError`."""
    if not isinstance(schema, dict) or cast("dict[str, Any]", schema).get("type") != "object":
        raise ToolConfigError(f'The input schema of {title} must be a JSON schema with "type": "object" at its top.')
    typed = cast("dict[str, Any]", schema)
    if wrong := [word for word in _NOT_AT_THE_TOP if word in typed]:
        raise ToolConfigError(f"The API takes no `{wrong[0]}` at the top of an input schema; {title} has one.")
    return typed
