"""The language guess says ``und`` wherever it cannot be sure."""

from __future__ import annotations

import pytest

from goldset.questions.language import guess_language


@pytest.mark.parametrize(
    "text",
    [
        "404 error",
        "hi",
        "Hello world",
        "asdfgh",
        "' OR 1=1--",
        "vpn",
        "AB-1209",
        "die hard movie",
        "war in ukraine",
        "",
        "🍟➕🍔",
        "故乡",
        "reset router password",
    ],
)
def test_short_text_and_codes_are_undetermined(text: str) -> None:
    assert guess_language(text) == "und"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I reset my router?", "en"),
        ("Wie setze ich zurück?", "de"),
        ("Comment puis-je réinitialiser mon mot de passe ?", "fr"),
        ("¿Cómo puedo restablecer mi contraseña?", "es"),
        ("Come posso reimpostare la mia password?", "it"),
        ("Como posso redefinir a minha senha?", "pt"),
        ("Hoe kan ik mijn wachtwoord opnieuw instellen?", "nl"),
        ("Hur kan jag återställa mitt lösenord?", "sv"),
        ("Hvordan kan jeg nulstille mit kodeord?", "da"),
        ("Jak mogę zresetować moje hasło?", "pl"),
        ("Şifremi nasıl sıfırlarım ve bu neden gerekli?", "tr"),
        ("Jak můžu obnovit své heslo a kde?", "cs"),
        ("Wi-Fi の設定を教えて", "ja"),
        ("비밀번호를 재설정하는 방법", "ko"),
        ("如何重置我的密码", "zh"),
        ("รีเซ็ตรหัสผ่าน", "th"),
        ("Πώς αλλάζω τον κωδικό", "el"),
    ],
)
def test_whole_sentences_are_told(text: str, language: str) -> None:
    assert guess_language(text) == language
