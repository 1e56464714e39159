"""Is this text a question that stands on its own? Greetings, fuzzing strings, and follow-ups by rule.

The rules look at the text alone (and at whether earlier turns exist); they are plain lists, so that a drop can be
explained. A follow-up is: an opener that continues ("and …", "what about …"), a bare prompt ("why?", "tell me
more"), or a pronoun without anything in the question that it could stand for. Limits: the pronoun rule knows
English only; a question that starts with "and" because it is about that word is dropped too, and counted.
"""

from __future__ import annotations

import re

from goldset.questions.language import guess_language
from goldset.text import question_key, tokenize


def _words(text: str, separator: str | None = None) -> frozenset[str]:
    return frozenset(text.split(separator))


_GREETING_CORE = _words(
    "guten hi hello hey hiya yo howdy greetings thanks thank thx ty ok okay bye goodbye cheers morning evening "
    "afternoon hallo moin servus danke tschüss hola gracias adiós bonjour bonsoir salut merci ciao grazie "
    "buongiorno olá oi obrigado obrigada hej tack dag bedankt cześć dzięki merhaba ahoj děkuji "
    "привет спасибо こんにちは 你好 您好"
)
_GREETING_MORE = _words(
    "there all everyone team bot assistant good guten tag morgen abend day you so very much a lot again for the help "
    "many your everybody folks that is fine great perfect nice cool awesome yes no i do please "
    "buenos buenas días tardes noches "
    "vielen dank viele schöne grüße"
)

_FUZZING = re.compile(
    r"""\s*(?:['"`)]+\s*(?:or|and)\s+\S+\s*=\s*\S+.*|<script\b.*|(?:\.\./){2,}\S*|.{0,40}\bunion\s+(?:all\s+)?select\b.*"""
    r"""|\$\{jndi:.*)""",
    re.IGNORECASE | re.DOTALL,
)

_OPENERS = re.compile(
    r"(?:and|or|but|also|plus|then|what about|how about|what if not|same for|und|oder|aber|was ist mit|"
    r"wie sieht es mit|mais|qu'en est-il|pero|qué tal con|en ook|maar)\b(?![/-])"
)
# One-letter and short openers that are words of other languages too ("y combinator", "e coli").
_OPENERS_IN = {
    "es": re.compile(r"[¿\s]*y\b"),
    "it": re.compile(r"e\b"),
    "pt": re.compile(r"e\b"),
    "fr": re.compile(r"et\b"),
    "nl": re.compile(r"en\b"),
}
_BARE = _words(
    "yes|no|yes please|no thanks|sure|why|why not|why is that|how|how so|how come|who|when|where|which|which one|what|"
    "what else|who else|anything else|something else|really|are you sure|tell me more|more|more details|go on|continue|"
    "explain|please explain|can you explain|elaborate|please elaborate|can you elaborate|for example|example|"
    "give me an example|examples|another|another one|next|same|summarize|summarise|repeat|again|try again|warum|wieso|"
    "weiter|mehr|ja|nein|pourquoi|oui|non|por qué|sí|perché|waarom|nee",
    "|",
)

_PRONOUNS = _words("it its they them their theirs he him his she her hers this that these those")
# Words that point at somebody or something named before, wherever a noun cannot follow them.
_PERSONAL = _words("it its they them their he him his she")
# "is it safe to …", "how long does it take to …", "is it raining": the pronoun stands for nothing.
_EXPLETIVE = re.compile(
    r"\b(?:is it|it is|it's|was it|isn't it) (?:\w+ ){1,3}?(?:to|that|if|for|when)\b|"
    r"\b(?:does|will|did|would) it (?:take (?:to|for|before)|mean|make sense)\b|\bis it worth\b|"
    r"\bit takes to\b|\b(?:is|does|will|did) it (?:still )?(?:rain|snow|cold|hot|warm|freez)\w*"
)
_ONE = re.compile(
    r"\b(?:the|this|that|which|other|another|first|second|third|last|next|previous|\d+(?:st|nd|rd|th)) "
    r"ones?\b|\b(?:the )?(?:former|latter)\b"
)
_FRAGMENT = _words("in on at for with without by from to of during after before between about than")
_EMPTY_WORDS = _words(
    "the a an and or but if so then of to in on at for with without by from into about over under as than too also "
    "is are was were be been being am do does did done doing have has had can could will would shall should may might "
    "must not no i you we me us my your our mine yours ours what when where which who whom whose why how there here "
    "yes please just really any some all both each more most much many very only same other else again still yet ever "
    "get got make made mean means use used work works thing things way ways tell explain know need want let one ones "
    "it its they them their theirs he him his she her hers this that these those s t re ve ll d m don doesn didn isn "
    "aren wasn weren won wouldn couldn shouldn can't happen happens happened possible different"
)
_MEASURES = _words("long old big far tall often high large soon good bad")


def is_greeting(text: str) -> bool:
    """Only a greeting, thanks or goodbye."""
    tokens = tokenize(text)
    core = any(token in _GREETING_CORE for token in tokens) or question_key(text) in _GREETING_CORE
    return core and (
        question_key(text) in _GREETING_CORE
        or (len(tokens) <= 6 and all(t in _GREETING_CORE or t in _GREETING_MORE for t in tokens))
    )


def is_fuzzing(text: str) -> bool:
    """A string that a security scanner types; a question about such a string is none."""
    return bool(_FUZZING.fullmatch(text)) and len(text.split()) <= 12


def is_followup(text: str, *, has_context: bool) -> bool:
    """Cannot stand alone; ``has_context`` = earlier turns exist."""
    key = question_key(text)
    if key.strip("'\"()") in _BARE:
        # "how" or "example" alone is a search like any other where no conversation goes before.
        return has_context or " " in key or key in {"why", "yes", "no", "sure", "more", "really", "warum", "pourquoi"}
    if _OPENERS.match(key) and " " in key:
        return True
    opener = _OPENERS_IN.get(guess_language(text))
    if opener and opener.match(key):
        return True
    tokens = tokenize(text)
    content = [token for token in tokens if token not in _EMPTY_WORDS]
    if _ONE.search(key) and len(content) <= 2:
        return True
    if has_context and 0 < len(tokens) <= 4 and tokens[0] in _FRAGMENT and len(content) <= 2:
        return True
    rest = tokenize(_EXPLETIVE.sub(" ", key))
    pointing = [i for i, token in enumerate(rest) if token in _PRONOUNS]
    if not pointing:
        return False
    # "is it still …", "how old was she when …": nothing goes before that the pronoun could stand for.
    if (
        pointing[0] <= 3
        and rest[pointing[0]] in _PERSONAL
        and all(t in _EMPTY_WORDS or t in _MEASURES for t in rest[: pointing[0]])
    ):
        return True
    return len(content) <= 2 and not _names_something(key, text)


def _names_something(key: str, text: str) -> bool:
    """A pronoun has something to stand for: an earlier clause with a content word, a name, or a word with a digit."""
    clauses = [tokenize(clause) for clause in re.split(r"[,.;?!]| and | but | so ", key)]
    for clause in clauses:
        if any(token in _PRONOUNS for token in clause):
            break
        if any(token not in _EMPTY_WORDS and token not in _GREETING_CORE for token in clause):
            return True
    words = text.split()
    return any(
        word[:1].isupper()
        and word.strip("?!.,") not in {"I", "I'm", "I've", "I'd", "I'll"}
        and not words[i].endswith((".", "?", "!"))
        for i, word in enumerate(words[1:])
    ) or any(any(character.isdigit() for character in word) for word in words)
