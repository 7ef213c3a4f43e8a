"""Data sets by name, their files, and what models read of them.

To find a data set:

    catalogue.py           which data sets there are: where from, checksums, licences, pitfalls
    registry.py            a data set by its name: fetch it, find its files, see what is here
    store.py               its files on this machine, or downloaded; a damaged one is never used

Images:

    images.py              Fashion-MNIST from files in the idx format, all of it or the part that ships
    fashion_mnist.py       Fashion-MNIST for a `Trainer`
    augmentation.py        images that a label survives, made of those that there are
    captions.py            captions of Fashion-MNIST, made by rule

Translation from English to French:

    translation.py         `Multi30k`, `Tatoeba`, `GrammarCorpus`, to train on and to score
    tatoeba.py             pairs of Tatoeba, in splits in which no sentence comes back
    fra_eng.py             D2L's data module: 512 short pairs
    grammar.py             pairs made by a small grammar, with the true alignment of their words
    grammar_phrases.py     the grammar's noun phrases and pronouns
    grammar_words.py       the grammar's words with their forms
    batching.py            batches of sequences of like length

Facts to ask of a model:

    capitals.py            countries and their capitals

Text to pretrain on:

    text.py                texts by name: novels, plays, articles, a manual, this book's prose
    pretraining.py         documents in two parts, and windows that are full

To watch a small Transformer learn:

    playground.py          what the page learns, for a `Trainer`
    playground_tasks.py    its tasks: of letters and digits, and the next letter of a text

Text with labels, for fine-tuning:

    labels.py              what these data share: splits, a tokenizer handed in, batches
    text_encoder.py        one interface over tokenizers: pieces, whence each comes, special tokens
    sentiment.py           film reviews: for the film or against it
    tagging.py             WNUT-17: names of persons, places and things
    paraphrases.py         pairs of sentences: do they mean the same
    question_answering.py  SQuAD: questions and passages, in windows
    squad.py               SQuAD's format, each answer found where it is said to be
"""
