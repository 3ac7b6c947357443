"""The functions of straight code: one for each core and each DMA channel that has commands."""

from collections.abc import Iterable, Iterator, Mapping

from spmilp.commands.commands import ChannelCommands, CoreCommands, Move, Run, Signal, Wait
from spmilp.export.actions.actions import Call, Copy, Operand
from spmilp.export.actions.places import FIRST_SPACE, WORKSPACE_SPACE, Address
from spmilp.export.code.constants import Constants
from spmilp.export.code.joined import joined
from spmilp.export.names import comment
from spmilp.export.player.program import memory_macros
from spmilp.export.subject import Profile, Subject
from spmilp.units import TaskIdx, TransferIdx

_BETWEEN = ",\n                "


class Lists:
    """Writes the functions of a plan's command lists.

    Parameters
    ----------
    calls, copies
        Of all tasks and transfers.
    """

    def __init__(
        self,
        subject: Subject,
        constants: Constants,
        calls: Mapping[TaskIdx, tuple[Call, ...]],
        copies: Mapping[TransferIdx, tuple[Copy, ...]],
    ) -> None:
        self._subject, self._constants = subject, constants
        self._calls, self._copies = calls, copies
        self._bases = [*memory_macros(subject), f"{subject.prefix.upper()}_IMAGE"]
        self.running = [one.core for one in subject.lists.cores if one.commands]

    def name(self, one: CoreCommands | ChannelCommands) -> str:
        """Return the name of a list's function."""
        start = f"{self._subject.prefix}_code"
        if isinstance(one, CoreCommands):
            return f"{start}_core{one.core}"
        return f"{start}_engine{one.engine}_channel{one.channel}"

    def core(self, one: CoreCommands) -> Iterator[str]:
        """Yield the function of a core."""
        yield f"/* Core {comment(self._subject.problem.machine.cores[one.core].name)}. */"
        yield from self._opening(one)
        for command in one.commands:
            match command:
                case Wait(event, count):
                    yield f"    SPMILP_WAIT({event}U, {count}U);"
                case Signal(event):
                    yield f"    spmilp_signal({event}U);"
                case Run(task):
                    yield from self._said(f"task {task}: ", self._subject.problem.tasks[task].name)
                    for call in self._calls[task]:
                        yield from self._call(call, self.running.index(one.core))
        yield from ("    SPMILP_END", "}")

    def channel(self, one: ChannelCommands, number: int) -> Iterator[str]:
        """Yield the function of channel ``number`` of all channels.

        A signal says that the transfers before it have completed; until then they queue.
        """
        engine = comment(self._subject.problem.machine.engines[one.engine].name)
        yield f"/* Channel {one.channel} of engine {engine}. */"
        yield from self._opening(one)
        is_moving = False
        for command in one.commands:
            match command:
                case Wait(event, count):
                    yield f"    SPMILP_WAIT({event}U, {count}U);"
                case Signal(event):
                    if is_moving:
                        yield f"    SPMILP_DMA_WAIT({number}U);"
                    is_moving = False
                    yield f"    spmilp_signal({event}U);"
                case Move(transfer):
                    source = self._subject.plan.transfers[transfer].source
                    moved = self._subject.name(self._subject.plan.residencies[source])
                    yield from self._said(f"transfer {transfer}: ", moved)
                    for copy in self._copies[transfer]:
                        yield f"    spmilp_dma_start({number}U, {self._copy(copy)});"
                    is_moving = True
        if is_moving:
            yield f"    SPMILP_DMA_WAIT({number}U);"
        yield from ("    SPMILP_END", "}")

    def _opening(self, one: CoreCommands | ChannelCommands) -> Iterator[str]:
        yield from (f"SPMILP_LIST({self.name(one)})", "{", "    SPMILP_BEGIN")

    def _said(self, what: str, name: str) -> Iterator[str]:
        """Yield a comment with a name of the model, in the debug profile."""
        if self._subject.profile is Profile.DEBUG:
            yield f"    /* {what}{comment(name)} */"

    def _call(self, call: Call, workspace: int) -> Iterator[str]:
        """Yield the gathering of what does not lie packed, a call, and the scattering after it."""
        given = [each for each in (*call.inputs, call.previous) if each is not None]
        yield from self._copies_of(given, workspace)
        operands = [*call.inputs, *([call.previous] if call.previous else []), call.output]
        addresses = ", ".join(self._operand(each, workspace) for each in operands)
        constants = f"&{self._constants.operator(call)}, {self._constants.boxes(call)}"
        yield f"    SPMILP_RUN({constants},"
        yield f"               {addresses});"
        yield from self._copies_of([call.output], workspace)

    def _copies_of(self, operands: Iterable[Operand], workspace: int) -> Iterator[str]:
        copies = [copy for each in operands for copy in joined(each.copies or ())]
        rows = [f"{{{self._copy(copy, workspace)}}}" for copy in copies]
        if rows:
            yield f"    SPMILP_COPY({_BETWEEN.join(rows)});"

    def _operand(self, operand: Operand | None, workspace: int) -> str:
        return "0" if operand is None else self._address(operand.place, workspace)

    def _copy(self, copy: Copy, workspace: int = 0) -> str:
        to, source = (self._address(e, workspace) for e in (copy.destination, copy.source))
        return f"{to}, {source}, {self._constants.shape(copy.shape)}"

    def _address(self, address: Address, workspace: int) -> str:
        base = f"{self._subject.prefix.upper()}_WORKSPACE({workspace})"
        if address.space != WORKSPACE_SPACE:
            base = self._bases[address.space - FIRST_SPACE]
        return f"{base} + {address.offset}U"
