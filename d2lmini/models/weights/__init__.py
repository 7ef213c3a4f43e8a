"""Models with weights, by name: what is published as data is fetched here and put into a model.

minilm.py  all-MiniLM-L6-v2, a BERT of six layers that gives sentences of like meaning like vectors
"""
