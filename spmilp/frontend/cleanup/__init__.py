"""Passes over the ONNX model, in the order that ``clean`` writes out.

    clean          the order, and the smallest passes: operator set, types, layouts
    bind           lengths of dynamic dimensions and values of inputs that are given
    constants      constant folding, weights without values, normalisation folded into weights
    bodies         operators as text: quantised and recurrent ones, and those of onnxruntime
    few_bits       constants of few bits
    control        Loop and Scan as one set of nodes per step
    nodes          helpers: new nodes, names and reasons, silence of libraries
Each pass changes the model in place.
"""
