"""What is a right answer to a prompt of the playground, for the tasks of the page and those of the package."""


def looked_up(prompt, answer):
    pairs = dict(zip(prompt[:-1:2], prompt[1::2], strict=True))
    asked = prompt[-1] + answer
    assert sorted(asked[::2]) == sorted(pairs) and len(pairs) == len(prompt) // 2
    return all(pairs[key] == value for key, value in zip(asked[::2], asked[1::2], strict=True))


RIGHT = {
    "copy": lambda prompt, answer: prompt == answer + ">",
    "reverse": lambda prompt, answer: prompt == answer[::-1] + ">",
    "sort": lambda prompt, answer: sorted(prompt[:-1]) == list(answer) and prompt[-1] == ">",
    "look up": looked_up,
    "add": lambda prompt, answer: sum(map(int, prompt[:-1].split("+"))) == int(answer),
}
