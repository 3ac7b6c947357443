"""Figures of plans and models, for people.

summary            the figures of a plan as plain data; the same as rows, text and HTML
search_log         each better incumbent and bound of a search, as text and JSON lines
address_stability  what became of the addresses of an earlier plan
figures            static figures: timelines, memory maps, traffic (by matplotlib)
page               one page for a browser that shows a plan and why, with its ``assets``
"""
