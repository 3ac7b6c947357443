"""COSMA: order, addresses and spills of one scratchpad in one exact model, for few bytes moved.

Li, Gupta and Malik, "COSMA", arXiv 2311.18246; its equations 1 to 12 are known here from a public
re-implementation (gkeramidasCSD-Group/Scale-Sim-SPM).

What is taken: the model, with two gaps closed (:mod:`.model` names them), over buffers as tensors
and tasks as operators. It is solved by CP-SAT; no big-M rows.

What the paper leaves open, or has otherwise, and what is done here:

- It counts spills of network inputs. Inputs and weights lie in DRAM anyway, and outputs go there,
  so as a solver a spill of these is free; the benchmark's reference keeps the paper's count.
- It has no times: what it decides happens one after another, and is then made short.
- It has no parts of tensors and nothing in place: every task needs its whole operands beside its
  whole result.
- Its divide and conquer for large networks is not here, nor its separate model of the least peak.

Modules: :mod:`.network` (a problem as operators on whole tensors), :mod:`.model`, :mod:`.solver`.

Not taken: more than one core, another objective than DRAM traffic, tasks with several results or
scratch, order without data, reserved ranges, data that begins or ends elsewhere than in one DRAM.
"""
