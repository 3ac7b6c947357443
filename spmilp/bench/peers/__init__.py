"""Inputs on which other tools have published, or were measured to reach, figures.

stream        two networks of Stream on its quad-core
set_resnet50  ResNet-50 as SET schedules it
"""
