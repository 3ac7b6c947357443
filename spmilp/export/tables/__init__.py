"""A plan as tables of integers of fixed width, which the C and the binary export both write.

    all_tables       all tables of a plan
    table, layouts   columns, rows and pools; the columns of each table (``docs/exports.md``)
    codes            numbers that stand for names
    plan_tables      tables of the plan alone
    programs, views  the steps of each task, and the boxes that they read and write
    operators        attributes, quantisation and types of operators
``docs/exports.md`` describes every field.
"""
