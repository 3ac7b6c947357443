"""TVM's latency hiding: load, compute and store stages of virtual threads, tied by tokens.

solver    the policy: what each stage does for each task, as a plan
tokens    queues of instructions that wait for tokens, replayed against the machine's transfers
"""
