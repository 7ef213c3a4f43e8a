r"""What is a strong language model good for?

A large language model gives, for any text, a distribution over what comes next. It was made to be good at that and,
mostly, instructed to be of help afterwards. What can be built on that? And what has to stand beside the model, since it
has no access to anything but its weights and what is in its context?

Four such things come up again and again:

- **retrieval**: documents are searched first, and what was found is put into the context;
- **tools**: the model writes a call, of a calculator, a database, a program, and reads what comes back;
- **verification**: something other than the model says whether an output is right;
- **calibration**: it is known how often an output with a given confidence is right, so that the doubtful ones can be
  passed on.
"""

from d2lmini.exercises.engine import Choice, Discussion, Exercise, Option

EXERCISE = Exercise(
    key="d2l-11.9.2",
    doc=__doc__,
    source="D2L 11.9, exercise 2",
    parts=[
        Discussion(
            key="d2l-11.9.2a",
            prompt="Propose three applications of a strong language model that differ in *what they use of it*. For "
            "each say: which property of the model carries it; in which form the model is asked (prompt with or "
            "without examples, fine-tuned, its features, its probabilities); what could be used in its place and why "
            "this is better; what a mistake costs and who would notice it; what stands beside the model; and how you "
            "would measure whether it works. Then name one application that seems to fit and that you would advise "
            "against.",
            hints=[
                "What does a language model give? Text that goes on, but also the probability of a text that somebody "
                "else has written, and features of a text that it has read.",
                "Sort by how mistakes are noticed: at once by the user (a draft), by a machine (a program with tests), "
                "by nobody (a number in a report).",
                "What is the baseline? A search engine, a classifier trained on a few thousand labels, a rule, a "
                "person.",
                "Advise against it where a mistake is expensive, hard to see, and nobody is there to see it.",
            ],
            rubric=[
                "The three differ in what they use of the model (writing, judging the probability of given text, "
                "features, following examples in the context), and not in their subject alone.",
                "For each it is said how the model is asked, and why not in another way.",
                "For each there is a simpler baseline, and a reason why the model should beat it.",
                "Mistakes are thought through: of which kind, what they cost, who notices them, and what stands beside "
                "the model against them.",
                "The measure is named, on data that the model has not read in training, with a number for the "
                "baseline; that the answers read well is no measure.",
                "The one advised against has a reason that more parameters would not remove.",
            ],
            explanation=r"""
One answer among many.

**1. Writing with a check: programs from descriptions.** What carries it: the model has read much code, and gives
*several* different attempts. It is asked by a prompt with the description and the code around it, and sampled n times.
Tests stand beside it: they need no model, and keep what passes. Baseline: a search for similar code, which is never
quite what is needed. A mistake is noticed by the tests or, where these are thin, by nobody until later; so the code is
read by a person, and the tests are not written by the same model. Measure: how many of held-out problems are solved by
one of n attempts (own-18.1 estimates it without bias), on problems that are younger than the training data.

**2. Reading with examples in the context: fields from reports.** Each report becomes a date, a place, an amount. What
carries it is in-context learning (Brown et al. 2020): a handful of examples says what is meant, and no label is needed.
Baseline: a BERT-size model, fine-tuned on a few thousand labels. It is far smaller, and can be as good, so the large
model pays while labels are lacking, or to *make* the labels of the small one. A mistake is silent: a wrong amount looks
like a right one. Therefore each field must be a quotation of the report, which a program verifies; the probability of
the answer, calibrated on some hundred reports read by people, says which go to a person. Measure: share of fields that
are exactly right against the share passed on, for both models.

**3. The probability of given text: which transcript is meant?** A speech recogniser offers ten transcripts. The model
writes nothing: it gives each one's log-probability, and the sum with the recogniser's score decides. It cannot invent
anything, as every candidate was heard. Baseline: the recogniser alone, or with an n-gram model. A mistake is one that
the recogniser might have made, too. Measure: word error rate on held-out speech, names apart, since a language model
prefers what is frequent. Cost: ten short texts in one batch, no sampling.

**Advised against: doses of medicines from the patient's question, without a pharmacist.** It fits at first sight: text
in, text out, and most answers are right. But a wrong number reads as well as a right one. The patient cannot see it,
nothing verifies it, and what would be needed, the patient's weight, liver and other medicines, is not in the question.
A larger model errs less often, which makes people check less, and what is missing from the context it cannot know
either. As a draft for a pharmacist, with the passage of the handbook beside it, it is another application.

What they have in common: the model is used where *checking is cheaper than making*, or where it need not make anything.
""",
        ),
        Choice(
            key="d2l-11.9.2b",
            prompt="A helpdesk answers questions about a product. Each week 3 % of the facts in its manual change, "
            "drawn by chance. A model was trained on the manual of 20 weeks ago and repeats that without an error. "
            "What share of its answers is right today, and what do you do about it?",
            hints=[
                "A fact is still right if none of 20 weeks has changed it.",
                "Can the weights know what was written yesterday?",
            ],
            options=[
                Option(
                    "About 54 %: put the passages of today's manual into its context.",
                    "A fact has outlived 20 weeks with probability 0.97^20. What changes belongs into the context, "
                    "where it can be exchanged, cited and checked, and not into weights. Retrieval does not guarantee "
                    "that the model keeps to the passages; but a reader can see whether it has, which is what "
                    "verification then starts from.",
                    right=True,
                ),
                Option(
                    "About 40 %: fine-tune it every week on what has changed since.",
                    "20 weeks of 3 % are not 60 %: some facts change twice, and 0.97^20 are left. And fine-tuning "
                    "teaches a manner much more readily than facts. Last week's manual is not removed by it, and each "
                    "week's model has to be tested anew.",
                ),
                Option(
                    "About 54 %: calibrate it, so that it says what it does not know.",
                    "The share is right. But its confidence was learned on the old manual: it is as sure of what has "
                    "changed since as of what has not, and the outdated answers are not the doubtful ones.",
                ),
                Option(
                    "97 %, so nothing: a larger model would not know more than that.",
                    "Only one week's changes are counted here: after two weeks 0.97 times 0.97 of the facts still "
                    "hold, and so on. That a larger model would not help is true: it has read nothing of what was "
                    "written after its training.",
                ),
            ],
        ),
        Choice(
            key="d2l-11.9.2c",
            prompt="A model sums long columns of amounts, step by step, and is right in 97 % of them. What do you put "
            "beside it?",
            hints=["Is there anything that does this exactly, at no cost?"],
            options=[
                Option(
                    "Self-consistency: draw 20 chains of steps and let their sums vote.",
                    "It removes mistakes that fall here and there, and leaves those that most chains make. And it "
                    "pays twenty times for what a calculator does exactly.",
                ),
                Option(
                    "More worked examples of long columns in the prompt, step by step.",
                    "They tell what is asked. That is not what it errs in.",
                ),
                Option(
                    "A tool: the model writes the sum as a call, a program computes it.",
                    "The model is good at finding out *what* is to be summed, and a program at summing. What is left "
                    "is whether the amounts were copied rightly, and that can be verified against the document.",
                    right=True,
                ),
                Option(
                    "Calibration: the sums that it is least sure of go to a person.",
                    "It would do, if nothing were exact. Here it makes people compute what a program could.",
                ),
            ],
        ),
        Choice(
            key="d2l-11.9.2d",
            prompt="A thousand applications a day are sorted by a model into *simple*, to be granted at once, and *to "
            "be looked at*. Its answer comes with a probability, and simple are those above 0.95. What must be known "
            "before it may run?",
            hints=["What does 0.95 mean, and who says so?"],
            options=[
                Option(
                    "That its accuracy on a large test set of applications is above 95 %.",
                    "This is a mean over all of them. Those above the threshold may be worse than they say, and above "
                    "all: where the hard ones are few, a model that calls everything simple has such an accuracy.",
                ),
                Option(
                    "Nothing more: a softmax gives probabilities, and 0.95 is one of them.",
                    "It gives numbers that sum to 1. That they are frequencies has to be measured. Instruction tuning "
                    "and RLHF are known to spoil it (OpenAI 2023 shows it of GPT-4).",
                ),
                Option(
                    "That it explains each of its decisions, in words that people accept.",
                    "An explanation is more text by the same model. It reads well if the decision is wrong, too, and "
                    "need not be what the decision rests on.",
                ),
                Option(
                    "How often it is right above 0.95 on cases that people have decided.",
                    "This is calibration where it matters: at the threshold, on this month's applications, decided by "
                    "people who did not see the model's answer, and for groups of applicants apart. A part must go on "
                    "being looked at by people, drawn at random, or nobody notices when it changes.",
                    right=True,
                ),
            ],
        ),
    ],
)
