"""Everything in one constraint program, with proofs: the CP-SAT solver.

The search, from the outside in:

- :mod:`.solver`: the order of its steps; :mod:`.options`: its settings and switches.
- :mod:`.phases`: the steps that find plans, and those that prove bounds, each within a budget;
  :mod:`.neighbourhoods`: what is searched around the best plan, in turns.
- :mod:`.state`: what they have found.
- :mod:`.inquiry`, :mod:`.parameters`: one run, as questions with targets, in one go or by CP-SAT's
  own neighbourhoods; CP-SAT's parameters.

What a model may decide:

- :mod:`.scope`: where tasks may run and which residencies there may be, in the whole problem or
  around a plan.
- :mod:`.structure`: which residency may come from which; :mod:`.model` makes the structures of one
  problem, with more residencies where a proof needs them.
- :mod:`.reading`: a plan in the model's terms.

The model (:mod:`.model`):

- :mod:`.variables`, :mod:`.constraints` (the table of contents of the constraints),
  :mod:`.resources`, :mod:`.multicast`, :mod:`.capacity`, :mod:`.objective`.
- :mod:`.strengthen`, :mod:`.symmetry`: rows and orders that only make the search faster.
- :mod:`.hints`, :mod:`.extract`: a plan into the model, and a solution out of it.
- :mod:`.load_relaxation`: a small relaxation beside it, for cheaper proofs.
"""
