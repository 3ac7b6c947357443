"""A player in C99 that runs the tables of a plan: on a host with threads, or on bare metal."""
