"""A cautious guess at the language of a question: script first, then function words; ``und`` where it cannot be told.

Made for one decision: is this question surely in a language that nobody asked for? So short text, keywords, codes and
mixtures are ``und`` and are kept. Limits: Latin-script languages outside the list below, and Cyrillic or Arabic
script in general, come out as ``und``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from goldset.text import tokenize

UNDETERMINED = "und"

_FUNCTION_WORDS = {
    "en": "the and of to in is are was were be been do does did how what when where which who why can could should "
    "would will i you my your we our it its this that there from with without for on at by not have has had "
    "if or an a than into about me they their he she his her any some more most much many",
    "de": "der die das und ist sind war waren wie was wann wo wer warum welche welcher welches kann können soll sollte "
    "wird werden ich du sie wir mein meine meinen ihr ein eine einen einem einer nicht kein keine mit ohne für "
    "auf von vom zum zur bei aus nach im den dem des es man gibt habe hat haben oder auch noch mir mich",
    "fr": "le la les des du un une et est sont était comment quoi quand où qui pourquoi quel quelle quels puis peut "
    "je tu il elle nous vous mon ma mes votre vos notre ne pas avec sans pour sur dans par que ce cette ces "
    "au aux ai avez être faire faut y en se ou",
    "es": "el la los las un una y es son era cómo qué cuándo dónde quién por cuál cuáles puedo puede yo tú usted "
    "nosotros mi mis su sus no con sin para sobre en del al que este esta estos hay tengo tiene se lo me de o "
    "como está están hacer",
    "it": "il lo la gli le un uno una e è sono come cosa quando dove chi perché quale quali posso può io tu noi mio "
    "mia miei suo non con senza per su nel nella del della dei delle al alla che questo questa ci ho ha si di da",
    "pt": "o a os as um uma e é são como quando onde quem porque qual quais posso pode eu você nós meu minha meus "
    "seu sua não com sem para sobre no na nos nas do da dos das ao que este esta há tenho tem se por em de",
    "nl": "de het een en is zijn was hoe wat wanneer waar wie waarom welke kan kunnen moet ik jij je u wij we mijn "
    "uw niet geen met zonder voor op van bij uit naar in dat dit er heb heeft hebben of ook aan te om",
    "sv": "den det en ett och är var hur vad när vem varför vilken vilka kan ska jag du ni vi min mitt mina din inte "
    "med utan för på av från till som att har finns om eller i man",
    "da": "den det en et og er var hvordan hvad hvornår hvor hvem hvorfor hvilken kan skal jeg du vi min mit mine din "
    "ikke med uden for på af fra til som at har findes om eller i man",
    "pl": "i jest są był jak co kiedy gdzie kto dlaczego który która które mogę można może ja ty my mój moja moje nie "
    "z bez dla na od do w we o po przez się to ten ta czy mam ma lub oraz",
    "tr": "ve bir bu şu ne nasıl neden nerede kim hangi kaç ben sen biz benim için ile mi mı mu mü değil var yok daha "
    "çok gibi olarak veya ama da de",
    "cs": "a je jsou byl jak co kdy kde kdo proč který která které mohu můžu může já ty my můj moje ne není z bez pro "
    "na od do v ve o po se si to ten ta nebo mám má jsem",
}
_OWNERS: dict[str, list[str]] = {}
for _language, _words in _FUNCTION_WORDS.items():
    for _word in _words.split():
        _OWNERS.setdefault(_word, []).append(_language)

# Scripts that one language owns; Han alone is Chinese only in longer text (a Japanese keyword has no kana either).
_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
_KANA = "\u3041-\u3096\u30a1-\u30fa"
# Language, letters that are its own, how many of them at least, letters that count as its text.
_SCRIPTS = tuple(
    (language, re.compile(f"[{own}]"), least, re.compile(f"[{text}]"))
    for language, own, least, text in (
        ("ja", _KANA, 2, _KANA + _HAN),
        ("ko", "\uac00-\ud7a3", 2, "\uac00-\ud7a3"),
        ("th", "\u0e01-\u0e3a\u0e40-\u0e4e", 3, "\u0e01-\u0e3a\u0e40-\u0e4e"),
        ("el", "\u0370-\u03ff\u1f00-\u1fff", 4, "\u0370-\u03ff\u1f00-\u1fff"),
        ("he", "\u05d0-\u05ea", 4, "\u05d0-\u05ea"),
        ("zh", _HAN, 6, _HAN),
    )
)


@lru_cache(maxsize=65536)
def guess_language(text: str) -> str:
    """Text -> ISO 639-1 code, or ``und``.

    A word counts 1 divided by the number of listed languages that share it, once. The best language wins with at
    least 1.5 points, twice the points of the second, from at least three words.
    """
    letters = sum(character.isalpha() for character in text)
    for language, own, least, script in _SCRIPTS:
        if len(own.findall(text)) >= least and 2 * len(script.findall(text)) >= letters:
            return language
    words = re.findall(r"[^\W\d_]+", " ".join(tokenize(text)))
    if len(words) < 3:
        return UNDETERMINED
    points = dict.fromkeys(_FUNCTION_WORDS, 0.0)
    for word in sorted(set(words)):
        for language in _OWNERS.get(word, ()):
            points[language] += 1 / len(_OWNERS[word])
    (first, best), (_, second) = sorted(points.items(), key=lambda item: (-item[1], item[0]))[:2]
    return first if best >= 1.5 and best >= 2 * second else UNDETERMINED
