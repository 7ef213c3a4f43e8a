"""The words of the grammar corpus: nouns, adjectives and verbs of English and French with the forms they take.

Every French word here that begins with a vowel or an h elides (the h are all mute), so one rule serves for all.
"""

from typing import NamedTuple

ANIMATE = ("human", "animal")
ALL_KINDS = ("human", "animal", "thing", "place")


class Noun(NamedTuple):
    """Its forms are pairs: singular, plural."""

    english: tuple
    french: tuple
    feminine: bool
    kind: str


class Adjective(NamedTuple):
    """``french`` holds masculine and feminine singular, masculine and feminine plural; ``before_vowel`` is the
    masculine singular in front of a vowel (un bel homme)."""

    english: str
    french: tuple
    before_vowel: str
    kinds: tuple


class Verb(NamedTuple):
    """English base, third person and participle, each a tuple of words; French forms of je, il, nous, vous, ils."""

    english: tuple
    third: tuple
    english_participle: tuple
    french: tuple
    infinitive: str
    participle: str
    kinds: tuple  # of its objects


# singular, plural, singular, plural, gender
_NOUNS = {
    "human": """
        man men homme hommes m; woman women femme femmes f; child children enfant enfants m; girl girls fille filles f
        boy boys garçon garçons m; king kings roi rois m; queen queens reine reines f; uncle uncles oncle oncles m
        aunt aunts tante tantes f; doctor doctors médecin médecins m; student students étudiant étudiants m
        neighbour neighbours voisin voisins m; actress actresses actrice actrices f; friend friends ami amis m
        nurse nurses infirmière infirmières f; princess princesses princesse princesses f""",
    "animal": """
        cat cats chat chats m; dog dogs chien chiens m; bird birds oiseau oiseaux m; horse horses cheval chevaux m
        cow cows vache vaches f; mouse mice souris souris f; bear bears ours ours m; spider spiders araignée araignées f
        """,
    "thing": """
        book books livre livres m; apple apples pomme pommes f; car cars voiture voitures f; key keys clé clés f
        letter letters lettre lettres f; painting paintings tableau tableaux m; tree trees arbre arbres m
        flower flowers fleur fleurs f; box boxes boîte boîtes f; hat hats chapeau chapeaux m; sword swords épée épées f
        umbrella umbrellas parapluie parapluies m; clock clocks horloge horloges f; knife knives couteau couteaux m
        shoe shoes chaussure chaussures f; jewel jewels bijou bijoux m""",
    "place": """
        garden gardens jardin jardins m; house houses maison maisons f; church churches église églises f
        hotel hotels hôtel hôtels m; kitchen kitchens cuisine cuisines f; school schools école écoles f
        forest forests forêt forêts f; park parks parc parcs m; castle castles château châteaux m
        room rooms chambre chambres f""",
}

# English; masculine singular, feminine singular, masculine plural; what it can be said of. The first stand before the
# noun in French too, with the form for a vowel at the end where there is one.
_BEFORE = """
    small petit petite petits human animal thing place; big grand grande grands animal thing place
    young jeune jeune jeunes human animal; good bon bonne bons human thing; pretty joli jolie jolis thing place
    old vieux vieille vieux human animal thing place vieil; new nouveau nouvelle nouveaux thing place nouvel
    beautiful beau belle beaux human animal thing place bel"""
_AFTER = """
    black noir noire noirs animal thing; white blanc blanche blancs animal thing; green vert verte verts thing
    red rouge rouge rouges thing; grey gris grise gris animal thing; tired fatigué fatiguée fatigués human animal
    happy heureux heureuse heureux human animal; sad triste triste tristes human animal
    famous célèbre célèbre célèbres human place; rich riche riche riches human; proud fier fière fiers human
    intelligent intelligent intelligente intelligents human animal; jealous jaloux jalouse jaloux human
    strange étrange étrange étranges human animal thing place; useful utile utile utiles thing
    expensive cher chère chers thing; heavy lourd lourde lourds thing; quiet tranquille tranquille tranquilles place
    dark sombre sombre sombres place; modern moderne moderne modernes place; empty vide vide vides place"""

# English base, third person, participle, what goes with it; French infinitive, and the forms where they are irregular:
# je, il, nous, vous, ils, participle
_TRANSITIVE = """
    see sees seen | voir vois voit voyons voyez voient vu
    love loves loved | aimer
    look looks looked for | chercher
    find finds found | trouver
    draw draws drawn | dessiner
    know knows known | connaître connais connaît connaissons connaissez connaissent connu
    admire admires admired | admirer
    wait waits waited for | attendre attends attend attendons attendez attendent attendu
    forget forgets forgotten | oublier
    choose chooses chosen | choisir choisis choisit choisissons choisissez choisissent choisi
    follow follows followed | suivre suis suit suivons suivez suivent suivi
    watch watches watched | regarder
    hate hates hated | détester
    avoid avoids avoided | éviter
    hide hides hidden | cacher
    lose loses lost | perdre perds perd perdons perdez perdent perdu
    touch touches touched | toucher
    paint paints painted | peindre peins peint peignons peignez peignent peint"""
_TRANSITIVE_ANIMATE = """
    understand understands understood | comprendre comprends comprend comprenons comprenez comprennent compris
    listen listens listened to | écouter
    hear hears heard | entendre entends entend entendons entendez entendent entendu
    help helps helped | aider
    thank thanks thanked | remercier"""
_INTRANSITIVE = """
    sleep sleeps slept | dormir dors dort dormons dormez dorment dormi
    sing sings sung | chanter
    run runs run | courir cours court courons courez courent couru
    work works worked | travailler
    laugh laughs laughed | rire ris rit rions riez rient ri
    dance dances danced | danser
    walk walks walked | marcher
    cry cries cried | pleurer
    smile smiles smiled | sourire souris sourit sourions souriez sourient souri
    hesitate hesitates hesitated | hésiter"""
_GIVING = """
    give gives given | donner
    show shows shown | montrer
    send sends sent | envoyer envoie envoie envoyons envoyez envoient envoyé
    sell sells sold | vendre vends vend vendons vendez vendent vendu
    lend lends lent | prêter
    offer offers offered | offrir offre offre offrons offrez offrent offert"""


def _items(table):
    return [item.split() for line in table.strip().splitlines() for item in line.split(";") if item.strip()]


def _nouns():
    for kind, table in _NOUNS.items():
        for singular, plural, un, des, gender in _items(table):
            yield Noun((singular, plural), (un, des), gender == "f", kind)


def _adjectives(table):
    for english, masculine, feminine, plural, *rest in _items(table):
        kinds = tuple(word for word in rest if word in ALL_KINDS)
        (before_vowel,) = [word for word in rest if word not in ALL_KINDS] or [masculine]
        yield Adjective(english, (masculine, feminine, plural, feminine + "s"), before_vowel, kinds)


def _verbs(table, kinds=()):
    for line in table.strip().splitlines():
        english, french = (half.split() for half in line.split("|"))
        base, third, participle, *particle = english
        infinitive, *forms = french
        if not forms:  # as chanter
            stem = infinitive.removesuffix("er")
            forms = [stem + ending for ending in ("e", "e", "ons", "ez", "ent", "é")]
        *present, past = forms
        forms = ((word, *particle) for word in (base, third, participle))
        yield Verb(*forms, tuple(present), infinitive, past, kinds)


NOUNS = tuple(_nouns())
BEFORE = tuple(_adjectives(_BEFORE))
AFTER = tuple(_adjectives(_AFTER))
VERBS = {
    "transitive": (*_verbs(_TRANSITIVE, ALL_KINDS), *_verbs(_TRANSITIVE_ANIMATE, ANIMATE)),
    "intransitive": tuple(_verbs(_INTRANSITIVE)),
    "give": tuple(_verbs(_GIVING, ("thing",))),
}
BE = Verb(("be",), ("is",), ("been",), ("suis", "est", "sommes", "êtes", "sont"), "être", "été", ())
HAVE = ("ai", "a", "avons", "avez", "ont")  # avoir, which makes the perfect
MODALS = {
    "can": ("peux", "peut", "pouvons", "pouvez", "peuvent"),
    "must": ("dois", "doit", "devons", "devez", "doivent"),
    "want": ("veux", "veut", "voulons", "voulez", "veulent"),
    "going": ("vais", "va", "allons", "allez", "vont"),
}
