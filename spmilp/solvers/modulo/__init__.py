"""Streams of inferences: a plan for one of them repeated as often as machines and memories allow.

decisions    what a plan decides, without times and addresses; constants that are permanent
reservations what is busy in a period
schedule     times of all activities for a period (modulo scheduling)
stream       the shortest period that is found, with addresses and a prologue
solver       the best stream of several plans for one inference, and its bound
"""
