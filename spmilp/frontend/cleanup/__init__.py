"""Passes over the ONNX model, in the order that ``clean`` writes out.

    clean          the order, and the smallest passes: operator set, types, layouts
    bind           lengths of dynamic dimensions and values of inputs that are given
    constants      constant folding, weights without values, normalisation folded into weights
    quantisation   quantised networks of all forms as DequantizeLinear, operators, QuantizeLinear
    control        Loop and Scan as one set of nodes per step
    recurrent      LSTM and GRU as one set of nodes per time step
    nodes          helpers: new nodes, names and reasons, silence of libraries
Each pass changes the model in place.
"""
