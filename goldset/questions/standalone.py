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

_GREETING_CORE = frozenset(
    "hi hello hey hiya yo howdy greetings thanks thank thx ty ok okay bye goodbye cheers morning evening afternoon "
    "hallo moin servus danke tschüss hola gracias adiós bonjour bonsoir salut merci ciao grazie buongiorno olá oi "
    "obrigado obrigada hej tack dag bedankt cześć dzięki merhaba ahoj děkuji привет спасибо こんにちは 你好 您好".split())
_GREETING_MORE = frozenset(
    "there all everyone team bot assistant good guten tag morgen abend day you so very much a lot again for the help "
    "your buenos buenas días tardes noches vielen dank viele schöne grüße everybody folks".split())

_FUZZING = re.compile(
    r"""\s*(?:['"`)]+\s*(?:or|and)\s+\S+\s*=\s*\S+.*|<script\b.*|(?:\.\./){2,}\S*|.{0,40}\bunion\s+(?:all\s+)?select\b.*"""
    r"""|\$\{jndi:.*)""", re.IGNORECASE | re.DOTALL)

_OPENERS = re.compile(
    r"(?:and|or|but|also|plus|then|what about|how about|what if not|same for|und|oder|aber|was ist mit|wie sieht es mit|"
    r"mais|qu'en est-il|pero|qué tal con|en ook|maar)\b(?![/-])")
# One-letter and short openers that are words of other languages too ("y combinator", "e coli").
_OPENERS_IN = {"es": re.compile(r"[¿\s]*y\b"), "it": re.compile(r"e\b"), "pt": re.compile(r"e\b"),
               "fr": re.compile(r"et\b"), "nl": re.compile(r"en\b")}
_BARE = frozenset(
    "yes|no|yes please|no thanks|sure|why|why not|why is that|how|how so|how come|who|when|where|which|which one|what|"
    "what else|who else|anything else|something else|really|are you sure|tell me more|more|more details|go on|continue|"
    "explain|please explain|can you explain|elaborate|please elaborate|can you elaborate|for example|example|"
    "give me an example|examples|another|another one|next|same|summarize|summarise|repeat|again|try again|warum|wieso|"
    "weiter|mehr|ja|nein|pourquoi|oui|non|por qué|sí|perché|waarom|nee".split("|"))

_PRONOUNS = frozenset("it its they them their theirs he him his she her hers this that these those".split())
_ONE = re.compile(r"\b(?:the|this|that|which|other|another|first|second|third|last|next|previous|\d+(?:st|nd|rd|th)) "
                  r"ones?\b|\b(?:the )?(?:former|latter)\b")
_FRAGMENT = frozenset("in on at for with without by from to of during after before between about than".split())
_EMPTY_WORDS = frozenset(
    "the a an and or but if so then of to in on at for with without by from into about over under as than too also "
    "is are was were be been being am do does did done doing have has had can could will would shall should may might "
    "must not no i you we me us my your our mine yours ours what when where which who whom whose why how there here "
    "please just really any some all both each more most much many very only same other else again still yet ever "
    "get got make made mean means use used work works thing things way ways tell explain know need want let one ones "
    "it its they them their theirs he him his she her hers this that these those s t re ve ll d m don doesn didn isn "
    "aren wasn weren won wouldn couldn shouldn can't happen happens happened possible different".split())


def is_greeting(text: str) -> bool:
    """Only a greeting, thanks or goodbye."""
    tokens = tokenize(text)
    core = any(token in _GREETING_CORE for token in tokens) or question_key(text) in _GREETING_CORE
    return core and (question_key(text) in _GREETING_CORE
                     or (len(tokens) <= 6 and all(t in _GREETING_CORE or t in _GREETING_MORE for t in tokens)))


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
    if has_context and tokens and tokens[0] in _FRAGMENT and len(content) <= 2:
        return True
    if not any(token in _PRONOUNS for token in tokens):
        return False
    return len(content) <= 2 and not _names_something(text)


def _names_something(text: str) -> bool:
    """A capitalised word after the first, or a word with a digit: something that a pronoun may stand for."""
    words = text.split()
    return any(word[:1].isupper() and word.strip("?!.,") not in {"I", "I'm", "I've", "I'd", "I'll"} and not
               words[i].endswith((".", "?", "!")) for i, word in enumerate(words[1:])) or any(
        any(character.isdigit() for character in word) for word in words)
