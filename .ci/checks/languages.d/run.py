"""Runs the programs of the documentation in PHP and Go with its vectors, and the samples of three requests in each language."""

import html
import json
import os
import pathlib
import re
import subprocess
import urllib.request

SIGNERS = [["php", "sign.php"], ["./sign-go"]]
VERIFIERS = [["php", "verify.php"], ["./verify-go"]]
# The service is shared: no request changes what other checks meet.
REQUESTS = {"placeOrder": '"status":"DELIVERED"', "listWallets": '"currency":"USD"', "clearSandboxFaults": ""}


def run(command: list[str], body: str = "", **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, **variables}
    return subprocess.run(command, input=body.encode(), env=environment, capture_output=True, timeout=60)


def check_vectors() -> None:
    for vector in json.loads(pathlib.Path("vectors.json").read_text()):
        for signer in SIGNERS:
            command = [*signer, vector["method"], vector["path"], vector["timestamp"]]
            signed = run(command, vector["body"], VOUCHSAFE_API_SECRET=vector["secret"])
            expected = f"X-Timestamp: {vector['timestamp']}\nX-Signature: {vector['signature']}\n"
            assert signed.stdout.decode() == expected, (signer, vector["name"], signed)
    for vector in json.loads(pathlib.Path("receivers.json").read_text()):
        headers = [vector[name] for name in ("webhook_id", "webhook_timestamp", "webhook_signature")]
        for verifier in VERIFIERS:
            verified = run([*verifier, *headers, vector["now"]], vector["body"], VOUCHSAFE_WEBHOOK_SECRET=vector["secret"])
            assert (verified.returncode == 0) == vector["genuine"], (verifier, vector["name"], verified)


def samples(operation: str) -> dict[str, str]:
    """The samples of a page by language, without their markup."""
    page = urllib.request.urlopen(f"{os.environ['DOCS_URL']}/docs/reference/{operation}").read().decode()
    tabs = re.findall(r'data-language="(\w+)">.*?<code>(.*?)</code>', page, re.DOTALL)
    return {language: html.unescape(re.sub("<[^>]+>", "", code)) for language, code in tabs}


def program(language: str, code: str) -> list[str] | None:
    """The command that runs a sample; `None` if there is no program for it."""
    if language == "go":
        # The sample takes the function of the signer, which is a program of its own.
        signer = re.search(r"\nfunc sign\(.*?\n}\n", pathlib.Path("sign.go").read_text(), re.DOTALL)[0]
        imports = "import (\n" + '\t"crypto/hmac"\n\t"crypto/sha256"\n' if "func sign" in code else "import (\n"
        code = code.replace("// func sign: from sign.go\n", signer).replace("import (\n", imports)
    file, command = {
        "python": ("sample.py", ["python3", "sample.py"]),
        "js": ("sample.mjs", ["node", "sample.mjs"]),
        "java": ("Example.java", ["sh", "-c", "javac -d . Sign.java Example.java && java -cp . Example"]),
        "php": ("sample.php", ["php", "sample.php"]),
        "go": ("sample.go", ["go", "run", "sample.go"]),
    }.get(language, (None, None))
    if file is None:
        return None
    pathlib.Path(file).write_text(code)
    return command


def check_samples() -> None:
    for operation, expected in REQUESTS.items():
        found = samples(operation)
        assert {"sh", "python", "js", "java", "php", "go", "csharp"} <= found.keys(), (operation, found.keys())
        for language, code in found.items():
            command = program(language, code)
            if command is not None:
                ran = run(command)
                assert ran.returncode == 0 and expected in ran.stdout.decode(), (operation, language, ran, code)


check_vectors()
check_samples()
