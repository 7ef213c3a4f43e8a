"""The steps of D2L's notebooks 11.1 to 11.8, in our own code, through ``import d2lmini as d2l``."""

import math

import matplotlib
import pytest
import torch

matplotlib.use("Agg")
import d2lmini as d2l


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    yield
    d2l.plt.close("all")


def image():
    """The heat map drawn last, as an array."""
    return d2l.plt.gcf().axes[0].images[0].get_array()


def test_11_1_exact_match_as_a_heat_map():
    attention_weights = torch.eye(10).reshape((1, 1, 10, 10))
    d2l.show_heatmaps(attention_weights, xlabel="Keys", ylabel="Queries")
    assert (image() == torch.eye(10).numpy()).all()


KERNELS = (d2l.gaussian, d2l.boxcar, d2l.constant, d2l.epanechikov)


def samples():
    x_train, _ = torch.sort(torch.rand(40) * 5)
    x_val = torch.arange(0, 5, 0.1)
    return x_train, 2 * torch.sin(x_train) + x_train + torch.randn(40), x_val, 2 * torch.sin(x_val) + x_val


def test_11_2_kernels_plotted():
    d2l.use_svg_display()
    _, axes = d2l.plt.subplots(1, 4, sharey=True, figsize=(12, 3))
    x = torch.arange(-2.5, 2.5, 0.1)
    for kernel, ax in zip(KERNELS, axes, strict=True):
        ax.plot(x.detach().numpy(), kernel(x).detach().numpy())
    peaks = [ax.lines[0].get_ydata().max() for ax in axes]
    assert peaks == pytest.approx([1] * 4, abs=1e-5)


@pytest.mark.parametrize(
    "kernel",
    [*KERNELS, *map(d2l.gaussian_with_width, (0.1, 0.2, 0.5, 1))],
    ids=lambda kernel: getattr(kernel, "__name__", repr(kernel)),
)
def test_11_2_regression_on_40_points(kernel):
    x_train, y_train, x_val, y_val = samples()
    y_hat, attention_w = d2l.nadaraya_watson(x_train, y_train, x_val, kernel)
    d2l.check_shape(y_hat, (50,))
    d2l.check_shape(attention_w, (40, 50))
    torch.testing.assert_close(attention_w.sum(0), torch.ones(50))
    torch.testing.assert_close(y_train @ attention_w, y_hat)
    d2l.plot(x_val, [y_hat, y_val], "x", "y", legend=["y_hat", "y"])
    d2l.plt.imshow(attention_w.detach().numpy(), cmap="Reds")
    error, spread = (y_hat - y_val).square().mean(), (y_train.mean() - y_val).square().mean()
    if kernel is d2l.constant:
        torch.testing.assert_close(error, spread)
    else:
        assert error < 0.5 * spread


def test_11_3_masked_softmax():
    weights = d2l.masked_softmax(torch.rand(2, 2, 4), torch.tensor([2, 3]))
    assert (weights > 0).sum(-1).tolist() == [[2, 2], [3, 3]]
    weights = d2l.masked_softmax(torch.rand(2, 2, 4), torch.tensor([[1, 3], [2, 4]]))
    assert (weights > 0).sum(-1).tolist() == [[1, 3], [2, 4]]
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2))
    d2l.check_shape(torch.bmm(torch.ones((2, 3, 4)), torch.ones((2, 4, 6))), (2, 3, 6))


KEYS, LENS = torch.normal(0, 1, (2, 10, 2)), torch.tensor([2, 6])
VALUES = torch.normal(0, 1, (2, 10, 4))


@pytest.mark.parametrize(
    ("attention", "query_size"),
    [(d2l.DotProductAttention(dropout=0.5), 2), (d2l.AdditiveAttention(num_hiddens=8, dropout=0.1), 20)],
    ids=["dot product", "additive"],
)
def test_11_3_attention_with_its_weights_shown(attention, query_size):
    queries = torch.normal(0, 1, (2, 1, query_size))
    attention.eval()
    d2l.check_shape(attention(queries, KEYS, VALUES, LENS), (2, 1, 4))
    d2l.show_heatmaps(attention.attention_weights.reshape((1, 1, 2, 10)), xlabel="Keys", ylabel="Queries")
    assert (image() > 0).sum(1).tolist() == [2, 6]


def test_11_3_dot_product_by_hand():
    queries = torch.normal(0, 1, (2, 1, 2))
    scores = torch.bmm(queries, KEYS.transpose(1, 2)) / math.sqrt(2)
    expected = torch.bmm(d2l.masked_softmax(scores, LENS), VALUES)
    torch.testing.assert_close(d2l.DotProductAttention(0.5).eval()(queries, KEYS, VALUES, LENS), expected)


class MiniFraEng(d2l.MTFraEng):
    """D2L's data module on a few lines of our own, so that the walk needs no file."""

    def _download(self):
        words = [("go", "va"), ("run", "cours"), ("stop", "arrête"), ("i", "je"), ("we", "nous"), ("home", "maison")]
        pairs = [(f"{a} {b}.", f"{x} {y} .") for a, x in words for b, y in words]
        return "\n".join(f"{english}\t{french}" for english, french in pairs) + "\n"


@pytest.fixture(scope="module")
def data():
    return MiniFraEng(batch_size=16, num_train=28, num_val=7)


def fit(model, data, epochs=2):
    trainer = d2l.Trainer(max_epochs=epochs, gradient_clip_val=1)
    trainer.fit(model, data)
    assert trainer.history["val_loss"][-1] < trainer.history["train_loss"][0]


def predictions(model, data):
    """The last steps of 11.4 and 11.7: translate, score, and keep the attention of one sentence."""
    engs, fras = ["go home .", "we run ."], ["va maison .", "nous cours ."]
    preds, _ = model.predict_step(data.build(engs, fras), d2l.try_gpu(), data.num_steps)
    for fra, p in zip(fras, preds, strict=True):
        translation = []
        for token in data.tgt_vocab.to_tokens(p):
            if token == "<eos>":
                break
            translation.append(token)
        assert 0 <= d2l.bleu(" ".join(translation), fra, k=2) <= 1
    batch = data.build([engs[-1]], [fras[-1]])
    _, weights = model.predict_step(batch, d2l.try_gpu(), data.num_steps, True)
    assert len(weights) == data.num_steps
    return weights


def test_11_4_a_decoder_of_ones_own(data):
    """A decoder written as D2L's is: time first, hidden state (layers, B, h), lazy layer, a list of weights."""

    class OwnDecoder(d2l.AttentionDecoder):
        def __init__(self, vocab_size, embed_size, num_hiddens, num_layers):
            super().__init__()
            self.attention = d2l.AdditiveAttention(num_hiddens, 0.1)
            self.embedding = torch.nn.Embedding(vocab_size, embed_size)
            self.rnn = torch.nn.GRU(embed_size + num_hiddens, num_hiddens, num_layers)
            self.dense = torch.nn.LazyLinear(vocab_size)
            self.apply(d2l.init_seq2seq)

        def init_state(self, enc_outputs, enc_valid_lens):
            outputs, hidden = enc_outputs
            return outputs.permute(1, 0, 2), hidden, enc_valid_lens

        def forward(self, X, state):
            memory, hidden, valid_lens = state
            outputs, self.kept = [], []
            for x in self.embedding(X).permute(1, 0, 2):
                context = self.attention(hidden[-1].unsqueeze(1), memory, memory, valid_lens)
                self.kept.append(self.attention.attention_weights)
                out, hidden = self.rnn(torch.cat((context, x.unsqueeze(1)), dim=-1).permute(1, 0, 2), hidden)
                outputs.append(out)
            return self.dense(torch.cat(outputs)).permute(1, 0, 2), [memory, hidden, valid_lens]

        @property
        def attention_weights(self):
            return self.kept

    encoder = d2l.Seq2SeqEncoder(len(data.src_vocab), 8, 16, 2)
    decoder = OwnDecoder(len(data.tgt_vocab), 8, 16, 2)
    state = decoder.init_state(encoder(torch.zeros((4, 7), dtype=torch.long)), None)
    output, state = decoder(torch.zeros((4, 7), dtype=torch.long), state)
    d2l.check_shape(output, (4, 7, len(data.tgt_vocab)))
    d2l.check_shape(state[0], (4, 7, 16))
    d2l.check_shape(state[1][0], (4, 16))
    model = d2l.Seq2Seq(encoder, decoder, tgt_pad=data.tgt_vocab["<pad>"], lr=0.01)
    fit(model, data)
    weights = predictions(model, data)
    stacked = torch.cat([step[0][0][0] for step in weights], 0).reshape((1, 1, -1, data.num_steps))
    d2l.show_heatmaps(stacked[:, :, :, :4].cpu(), xlabel="Key positions", ylabel="Query positions")
    assert image().shape == (data.num_steps, 4)


def test_11_5_multi_head_attention():
    attention = d2l.MultiHeadAttention(100, 5, 0.5)
    X, Y, valid_lens = torch.ones((2, 4, 100)), torch.ones((2, 6, 100)), torch.tensor([3, 2])
    d2l.check_shape(attention(X, Y, Y, valid_lens), (2, 4, 100))
    d2l.check_shape(attention.transpose_qkv(X), (10, 4, 20))
    d2l.check_shape(attention.transpose_output(attention.transpose_qkv(X)), (2, 4, 100))


def test_11_6_positional_encoding():
    pos_encoding = d2l.PositionalEncoding(32, 0)
    X = pos_encoding(torch.zeros((1, 60, 32)))
    P = pos_encoding.P[:, : X.shape[1], :]
    torch.testing.assert_close(X, P)
    d2l.plot(torch.arange(60), P[0, :, 6:10].T, xlabel="Row (position)", figsize=(6, 2.5), legend=list("abcd"))
    d2l.show_heatmaps(P[0].unsqueeze(0).unsqueeze(0), xlabel="Column", ylabel="Row", figsize=(3.5, 4), cmap="Blues")
    assert image().shape == (60, 32)


def test_11_7_transformer(data):
    ffn = d2l.PositionWiseFFN(4, 8)
    ffn.eval()
    d2l.check_shape(ffn(torch.ones((2, 3, 4))), (2, 3, 8))
    d2l.check_shape(d2l.AddNorm(4, 0.5)(torch.ones((2, 3, 4)), torch.ones((2, 3, 4))), (2, 3, 4))
    X, valid_lens = torch.ones((2, 100, 24)), torch.tensor([3, 2])
    encoder_blk = d2l.TransformerEncoderBlock(24, 48, 8, 0.5)
    d2l.check_shape(encoder_blk.eval()(X, valid_lens), X.shape)
    encoder = d2l.TransformerEncoder(200, 24, 48, 8, 2, 0.5)
    d2l.check_shape(encoder(torch.ones((2, 100), dtype=torch.long), valid_lens), (2, 100, 24))
    decoder_blk = d2l.TransformerDecoderBlock(24, 48, 8, 0.5, 0)
    d2l.check_shape(decoder_blk(X, [encoder_blk(X, valid_lens), valid_lens, [None]])[0], X.shape)

    size = {"num_hiddens": 16, "ffn_num_hiddens": 24, "num_heads": 4, "num_blks": 2, "dropout": 0.1}
    encoder = d2l.TransformerEncoder(len(data.src_vocab), **size)
    decoder = d2l.TransformerDecoder(len(data.tgt_vocab), **size)
    model = d2l.Seq2Seq(encoder, decoder, tgt_pad=data.tgt_vocab["<pad>"], lr=0.005)
    fit(model, data)
    dec_attention_weights = predictions(model, data)
    heads, steps = 4, data.num_steps
    enc_attention_weights = torch.cat(model.encoder.attention_weights, 0).reshape((2, heads, -1, steps))
    d2l.check_shape(enc_attention_weights, (2, heads, steps, steps))
    rows = [head[0].tolist() for step in dec_attention_weights for attn in step for blk in attn for head in blk]
    filled = torch.tensor([row + [0.0] * (steps - len(row)) for row in rows]).reshape((-1, 2, 2, heads, steps))
    own, between = filled.permute(1, 2, 3, 0, 4)
    d2l.check_shape(own, (2, heads, steps, steps))
    d2l.check_shape(between, (2, heads, steps, steps))
    assert not own.triu(1).any(), "a token attended to its future"
    d2l.show_heatmaps(own, xlabel="Key positions", ylabel="Query positions", titles=["a", "b", "c", "d"])


def test_11_8_vision_transformer():
    img_size, patch_size, num_hiddens, batch_size = 96, 16, 512, 4
    patch_emb = d2l.PatchEmbedding(img_size, patch_size, num_hiddens)
    X = torch.zeros(batch_size, 3, img_size, img_size)
    d2l.check_shape(patch_emb(X), (batch_size, (img_size // patch_size) ** 2, num_hiddens))
    assert d2l.PatchEmbedding().num_patches == 36
    d2l.check_shape(d2l.ViTMLP(48, 24)(torch.ones((2, 100, 12))), (2, 100, 24))
    X = torch.ones((2, 100, 24))
    encoder_blk = d2l.ViTBlock(24, 24, 48, 8, 0.5)
    encoder_blk.eval()
    d2l.check_shape(encoder_blk(X), X.shape)

    # the published sizes take hours on a processor
    img_size, patch_size = 32, 16
    num_hiddens, mlp_num_hiddens, num_heads, num_blks = 32, 64, 8, 2
    emb_dropout, blk_dropout, lr = 0.1, 0.1, 0.1
    model = d2l.ViT(
        img_size, patch_size, num_hiddens, mlp_num_hiddens, num_heads, num_blks, emb_dropout, blk_dropout, lr
    )
    data = d2l.FashionMNIST(batch_size=128, resize=(img_size, img_size), subset="shipped")
    fit(model, data)
    d2l.check_shape(model.pos_embedding, (1, 5, num_hiddens))
    d2l.check_shape(model.cls_token, (1, 1, num_hiddens))
    d2l.check_shape(model.attention_weights[1], (104 * num_heads, 5, 5))  # 1,000 images: 104 in the last batch
    X, y = batch = next(iter(data.get_dataloader(train=False)))
    d2l.check_shape(X, (128, 1, img_size, img_size))
    assert model.accuracy(model(X), y) > 0.3
    axes = data.visualize(batch)
    assert [ax.get_title() for ax in axes] == data.text_labels(y[:8])
