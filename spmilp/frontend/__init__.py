"""From a model file to a network of fused groups.

    load                      the whole line
    find, read, cleanup       the file; passes that make shapes static and nodes few
    convert                   nodes become operators with explicit attributes
    unfused                   operators and tensors before they are fused; every output is written
    quantise                  quantised patterns become integer operators
    passes                    which passes are on
    fuse                      operators that one task computes become groups
    divide                    operators of which no tile fits a memory become several
    graph                     the network: operators, tensors, groups
    join                      several networks as one, side by side
    operators                 one family per kind of operator: shapes, regions, work
    regions                   tiles of a group, boxes that one needs, and its work
No ONNX object leaves this package.
"""
