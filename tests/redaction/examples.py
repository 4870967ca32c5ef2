"""Texts with a secret in them, marked «like this», and texts with none.

The secrets are put together from pieces here, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from telex.redaction import MARKER
from telex.redaction.rules import RULES
from telex.redaction.shapes import Token


def some(length: int, alphabet: str = "A-Za-z0-9") -> str:
    """Characters that could be a key."""
    usable = re.findall(f"[{alphabet}]", "aB3dE5gH7jK9mN2pQ4sT6vW8xYc0f1b2e4")
    return "".join(itertools.islice(itertools.cycle(usable), length))


@dataclass(frozen=True)
class Example:
    rule: str
    marked: str

    @property
    def text(self) -> str:
        return self.marked.replace("«", "").replace("»", "")

    @property
    def redacted(self) -> str:
        shown, *hidden = self.marked.split("«")
        return shown + "".join(MARKER + rest.partition("»")[2] for rest in hidden)


KEY_LINES = [some(64)] * 6
BEGUN = "Z9y8X7w6V5u4T3s2"
"""What is shown of a word known by its end; no other example has it in its secret."""
KEY = "\n".join(KEY_LINES)
LABEL, AUTH, BEARER = "labelled value", "authorization header", "bearer token"
URL, BLOCK, JWT = "URL password", "private key block", "JSON web token"

EXAMPLES = [
    Example(LABEL, "token=«abc» rest"),
    Example(LABEL, "API_KEY: «abc»"),
    Example(LABEL, "api-key =  «abc»,next"),
    Example(LABEL, "?apikey=«abc&x=1» HTTP/1.1"),
    Example(LABEL, f"export GITHUB_TOKEN=«{some(12)}»\r\n$ "),
    Example(LABEL, "DB_PASSWORD=«p4ss;w(o)rd»\n"),
    Example(LABEL, "passwd: «x» ok"),
    Example(LABEL, "the secret: «s3cret»]"),
    Example(LABEL, f"aws_secret_access_key = «{some(38)}/+»\n"),
    Example(LABEL, f'"SecretAccessKey": "«{some(40)}»"'),
    Example(LABEL, f"AccountKey=«{some(40)}==»;Suffix=net x"),
    Example(LABEL, "export TOKEN=«abc»; ls"),
    Example(LABEL, "(cd x && DB_PASSWORD=«abc» make) && TOKEN=«def»&& ls"),
    Example(LABEL, "TOKEN=«abc»;"),
    Example(LABEL, "$(TOKEN=«abc» cmd; PASSWORD=«x1»)"),
    Example(LABEL, '{"user": "me", "password": "«abc»", "id": 7}'),
    Example(LABEL, "{'password': '«correct horse, battery»'}"),
    Example(LABEL, 'password="«it\\"s»" user="me"'),
    Example(LABEL, 'password="«ends\\\\»" user="me"'),
    Example(LABEL, r"{\"password\": \"«abc»\", \"id\": 7}"),
    Example(LABEL, r"{\"password\": \"«a\\\"c»\", \"id\": 7}"),
    Example(LABEL, 'password = """«abc»"""'),
    Example(LABEL, "password=b'«abc»' user=b'me'"),
    Example(LABEL, 'token: Some("«a b»") id: Some(7)'),
    Example(LABEL, "secret => '«abc»'"),
    Example(LABEL, "secret := «abc» x"),
    Example(LABEL, "token=«password=abc» x"),
    Example(LABEL, "token=«password=»'«my own phrase»' x"),
    Example(LABEL, r"token=«password=\»'«my own phrase»\' x"),
    Example(LABEL, "token=«abc» secret=«def»"),
    Example(LABEL, "password=«\\abc» x"),
    Example(LABEL, f"TOKEN=«{some(20)}» \r«{some(12)}»\r\n$ "),
    Example(LABEL, f'token="«{some(20)} »\r«{some(12)}»"\r\n$ '),
    Example(AUTH, "Authorization: Bearer «xyz»\r\n"),
    Example(AUTH, f"authorization: Basic «{some(8)}==»\r\n"),
    Example(AUTH, f"-H 'Authorization: token «{some(30)}»' -v"),
    Example(AUTH, '"Authorization": "Bearer «a.b»"'),
    Example(AUTH, f"Proxy-Authorization: «Unheard» «{some(9)}» next"),
    Example(AUTH, f"Authorization: «{some(20)}»\r\n"),
    Example(BEARER, f"Bearer «{some(8)}» ok"),
    Example(BEARER, "bearer   «a.b_c~d+e/f==» ok"),
    Example(URL, "postgres://app:«hunter2»@db:5432/main"),
    Example(URL, "redis://:«p@ss»@cache/0"),
    Example(URL, "https://me@example.org:«pw»@host/path?x=1"),
    Example(URL, "see 'ftp://u:«p»@h'"),
    Example(BLOCK, f"-----BEGIN RSA PRIVATE KEY-----\n«{KEY}\n»-----END RSA PRIVATE KEY-----\n$ "),
    Example(BLOCK, f"-----BEGIN PRIVATE KEY----- «{some(40)} »-----END PRIVATE KEY-----"),
    Example(
        BLOCK,
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n«Comment: me <a@b>\n\n{KEY}\n=ab1=\n»"
        "-----END PGP PRIVATE KEY BLOCK-----\n",
    ),
    Example(
        BLOCK,
        f"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n«{KEY}\n»"
        "---- END SSH2 ENCRYPTED PRIVATE KEY ----\n",
    ),
    Example(
        BLOCK,
        "web | -----BEGIN EC PRIVATE KEY-----\n«web | "
        + "\nweb | ".join(KEY_LINES)
        + "\nweb | »-----END EC PRIVATE KEY-----\n",
    ),
    Example(JWT, f"got «eyJ{some(20)}.eyJ{some(30)}.{some(43)}» today"),
    Example(JWT, f"got «eyJ{some(20)}.e30.» today"),
    Example(JWT, f"it was «eyJ{some(20)}.{some(9)}.{some(9)}.{some(9)}»."),
]
EXAMPLES += [
    Example("named value", '<add key="Password" value="«hunter2»" />'),
    Example("named value", '{"name": "DB_PASSWORD", "value": "«hunter2»"}'),
    Example("named value", "- name: DB_PASSWORD\n  value: «hunter2»\n"),
    Example("password variable", "export DB_PASS=«hunter2»; ls"),
    Example("password variable", "AZURE_PAT=«abc» MYSQL_PWD='«abc»'"),
    Example("password variable", "db_pass: «hunter2»"),
    Example("password field", "Server=db;Uid=sa;Pwd=«hunter2»;Database=x"),
    Example("password field", '{"user": "me", "pass": "«hunter2»"}'),
    Example("password field", "POST /?user=me&pwd=«hunter2» HTTP/1.1"),
    Example("connection string", "pwd=«hunter2»;server=db"),
    Example("key variable", "STRIPE_KEY=«abc» next"),
    Example("key", f'"key": "«{some(20)}»"'),
    Example("key", f"license: «{some(20)}»"),
    Example("registry credentials", "//registry/:_auth=«dXNlcjpwYXNz»"),
    Example("registry credentials", '"auth": "«dXNlcjpwYXNzd29yZA==»"'),
    Example("option", "gh --token «abc123» --verbose"),
    Example("option", "app --db-password «hunter2» -v"),
    Example("option", "app --api-key '«my key»' -v"),
    Example("option", "java -password «hunter2» x"),
    Example("assigned variable", "setenv API_TOKEN «hunter2»"),
    Example("assigned variable", "set -gx API_TOKEN «hunter2»"),
    Example("assigned variable", "ENV API_TOKEN «hunter2»"),
    Example("assigned variable", "aws configure set aws_secret_access_key «hunter2»"),
    Example("login file", "machine example.org login me password «hunter2» x"),
    Example("login file", "machine example.org\n  login me\n  password «hunter2»\n"),
    Example("element", "<password>«hunter2»</password>"),
    Example("element", "<ns:clientSecret>«it is»</ns:clientSecret>"),
    Example("statement", "CREATE USER me IDENTIFIED BY '«hunter2»';"),
    Example("statement", "ALTER ROLE me WITH PASSWORD '«hunter2»';"),
    Example("pass phrase argument", "openssl rsa -passin pass:«hunter2» -in x"),
    Example("cookie header", f"Cookie: session=«{some(20)}»; theme=dark"),
    Example("cookie header", f"Set-Cookie: sid=«{some(20)}»; Path=/; HttpOnly"),
    Example("basic credentials", "sent Basic «dXNlcjpwYXNzd29yZA==» ok"),
    Example("query parameter", f"GET /?sid=«{some(24)}»&x=1"),
    Example("command", "mysql -u root -p«hunter2» db"),
    Example("command", "mysql -uroot -p'«hun ter»' db"),
    Example("command", "sshpass -p «hunter2» ssh -p 2222 host"),
    Example("command", "/usr/bin/curl -sSu me:«hunter2» https://x"),
    Example("command", 'curl --user "me:«hun ter»" https://x'),
    Example("command", "curl \\\n  -u me:«hunter2» \\\n  https://x; mysql -p«hunter3»"),
    Example("command", "docker login -u me -p «hunter2» registry"),
    Example("command", "ldapsearch -x -D cn=me -w «hunter2» -b dc=x"),
    Example("command", "redis-cli -h x -a «hunter2» ping"),
    Example("command", "smbclient //h/s -U me%«hunter2»"),
    Example("command", "7z x -p«hunter2» a.7z"),
    Example(LABEL, "password=getpass(token=«hunter2»)"),
    Example(LABEL, '$env:API_TOKEN = "«hunter2»"'),
    Example(LABEL, "docker run -e API_TOKEN=«hunter2» x"),
    Example(LABEL, 'curl -H "X-Api-Key: «hunter2»" https://x'),
    Example(LABEL, "spring.datasource.password = «swordfish»"),
    Example(LABEL, "password = «swordfish»"),
    Example(LABEL, "db_password=«Summer2024(!» x"),
    Example(LABEL, "password     =     '«swordfish»'"),
]
EXAMPLES += [
    Example(
        rule.name,
        f"key «{rule.prefixes[0]}{some(rule.shape.least + 7, rule.shape.rest)}» used"
        if rule.hides_prefix
        else f"key {rule.prefixes[0]}«{some(rule.shape.least + 7, rule.shape.rest)}» used",
    )
    for rule in RULES
    if isinstance(rule.shape, Token) and rule.prefixes
]

EXAMPLES += [
    Example("element", '<password type="x">«hunter2»</password>'),
    Example("element", "<password>\n  «hunter2»\n</password>\n"),
    Example("element", "<password>\r\n«hunter2»\r\n</password>"),
    Example("element", "<password>  «hunter2» </password>"),
    Example("element", "<password><![CDATA[«a<b]c»]]></password>"),
    Example("named element", '<entry key="db.password">«hunter2»</entry>'),
    Example("named element", '<property type="x" name="apiToken">«hunter2»</property>'),
    Example("named element", "<key>password</key>\n  <string>«hunter2»</string>"),
    Example("command", "twine upload -u __token__ -p «hunter2» dist/*"),
    Example("command", "rabbitmqadmin -u me -p «hunter2» list queues"),
    Example("command", "rabbitmqctl add_user me «hunter2»"),
    Example("command", "vault login «hunter2»"),
    Example("command", "vault login -no-print «hunter2»; ls"),
    Example("command", "nmcli dev wifi connect home password «hunter2» ifname wlan0"),
    Example("command", "htpasswd -b /etc/users me «hunter2»"),
    Example("command", "htpasswd -nbB -C 10 me «hunter2»"),
    Example("command", "htpasswd -b users me «123456»"),
    Example("command", "openssl enc -k «hunter2» -in a -out b"),
    Example("command", "xfreerdp /v:host /u:me /p:«hunter2» /f"),
    Example("command", "lftp -u me,«hunter2» host"),
    Example("command", "plink -pw «hunter2» me@host"),
    Example("command", "net user me «hunter2» /add"),
    Example(LABEL, "SECRET_KEY_BASE=«hunter2»"),
    Example("numbered variable", "DB_PASSWORD_OLD=«hunter2» API_KEY_2=«swordfish»"),
    Example("key variable", "MY_KEYS=«abc» x"),
    Example("key", f"api_tokens: «{some(20)}»"),
    Example("password variable", "STRIPE_SK=«abc» DB_PW=«abc»"),
    Example("password variable", 'dbPwd: "«hunter2»", userPwd=«hunter2»'),
    Example("preshared key", 'ssid="home"\npsk="«hunter2»"\n'),
    Example("preshared key", "wpa_psk=«hunter2»"),
    Example("preshared key", r"'ssid=\"home\"\npsk=«hunter2\n»'"),
    Example("directive", "requirepass «hunter2»\nmasterauth «hunter2»\n"),
    Example("directive", "CONFIG SET requirepass «hunter2»"),
    Example("assigned variable", "npm config set //r/:_authToken «hunter2»"),
    Example("assigned variable", "git config --global github.token «hunter2»"),
    Example("assigned variable", 'dotnet user-secrets set "Db:Password" "«hunter2»"'),
    Example("connection string", 'pwd="«hunter2»" x'),
    Example("connection string", "Pwd=«hunter2»;"),
    Example("password field", "user=x pwd=«hunter2»;"),
    Example("password field", "Server=db;Uid=sa;Pwd=«hunter2»"),
    Example("password after a phrase", "The password is «hunter2» today."),
    Example("password after a phrase", "Das Passwort lautet «hunter2»"),
    Example("password after a phrase and a colon", "your new password is: «swordfish»"),
    Example("password in another language", "Passwort: «swordfish»"),
    Example("password in another language", "Mot de passe : «swordfish»"),
    Example("password in another language", "Contraseña: «swordfish» Senha: «swordfish»"),
    Example("password in another script", "Пароль: «swordfish» 密码：«swordfish» Hasło: «x1yz»"),
    Example("PuTTY private key", f"Private-Lines: 2\n«{some(64)}»\n«{some(30)}=»\nPrivate-MAC: ab"),
    Example("PuTTY private key", f"Private-Lines: 1 «{some(64)}» Private-MAC: ab"),
    Example("URL user", f"git clone https://{BEGUN[:12]}«{some(28)}»@github.com/x.git"),
    Example("URL user", f"https://{BEGUN[:12]}«{some(28)}»:@host/"),
    Example("hexadecimal known by its end", f"got 9f8e7d6c5b4a«{some(20, 'a-f0-9')}-us12» ok"),
    Example("word known by its end", f"got {BEGUN}«{some(36)}JQQJ99{some(26)}» ok"),
    Example("word known by its end", f"key {BEGUN}«{some(60)}ACDb{some(5)}A==» ok"),
]

INNOCENT = [
    "Password: ",
    "password:\n",
    "token: \r\n",
    "tokens=12 max_tokens: 4096 token_count=3 secrets: none",
    'input("Password: ") and getpass("Token: ")',
    'child.expect("password:", timeout=5)',
    'if line == "secret:" and more',
    '{"password": "", "token": \'\'}',
    'token=, password=] secret=} password=""|other',
    "Token::new(Secret::default())",
    "a task-management-system-configuration for the disk-utilisation-department",
    f"sk-{some(15)} is one short",
    f"xsk-{some(30)} begins inside a word",
    "the bearer of this letter, a bearer bond",
    "http://localhost:8080/ and https://[::1]:80/x and ssh://host:22",
    "http://user@host/ and mail to me@example.org: today",
    "-----BEGIN CERTIFICATE-----\n" + KEY + "\n-----END CERTIFICATE-----\n",
    "-----BEGIN PUBLIC KEY-----\n" + KEY + "\n-----END PUBLIC KEY-----\n",
    "-------- 8< --------",
    f"eyJ{some(30)} and eyJ{some(30)}.{some(20)} have no third part",
    "AKIA is a prefix, AIza another, ghp_ too, and glpat- and xoxb-",
    "npm_config_registry=https://registry.example.org npm_lifecycle_event=test",
    "password: str, token: int | None = None, secret: bool) -> bytes:",
    "self.token = token; user, password = auth; token = self.next()",
    "password=getpass() secret=secret, progress_token=progress_token)",
    'headers = {"authorization": f"Bearer {token}"}',
    "TOKEN=${TOKEN} PASSWORD=$PASSWORD KEY={key} password: <password> token=%s",
    "Private key: see the manual. The secret: nothing. A password: the one you know.",
    'cache_key = "user-profile-v2"; sort_key=lambda x: x[1]; PUBLIC_KEY=abc; primary_key=True',
    "use --token TOKEN or [--password PASSWORD]; --token is required, the -p option too",
    "mysql -u root -p db; mysql -P 3306; curl -u $USER:$PASS https://x; curl -u me https://x",
    "https://user:pass@host/ and https://user:password@host/ and https://u:{password}@h/",
    "bearer authentication and Basic authentication, basic operations, a bearer certificate",
    "`Authorization: Bearer`. The first letter `password=` of it",
    "-----BEGIN RSA PRIVATE KEY-----, -----END RSA PRIVATE KEY-----",
    "\x1b[1mbold\x1b[0m and \x1b]0;a title\x07 and a prompt $ ",
    "token: invalid, API key: missing, password: incorrect",
    "test_api_key=PASSED test_token=FAILED test_password=skipped",
    "The secret: patience. Its secret: time and patience",
    "COMPOSE_KEY=ralt LEADER_KEY=C-b MOD_KEY=Super_L HELP_KEY=F1",
    "MAX_TOKENS=4096 SSH_KEYS=/root/.ssh FOREIGN_KEYS=ON",
    "xoxo-love-and-kisses",
    "pwd=/some/dir; pwd: /x; PWD=/x; oldPwd: /x",
    'pwd="/a"; pwd="$(pwd)"; pwd="$PWD"',
    "The password is required. A token is expired. The password is stored in base64.",
    "the password is wrong; the password was changed yesterday; my password is utf-8",
    '<string name="password">Enter your password</string><label name="token">Token</label>',
    "usage: login <user> <password>\nlogin: <token> of this page</b>",
    "<password/>text</b> and <password type='x'/>text</b>",
    "vault login page, cargo login [token], vault login -method=github",
    "openssl req -newkey rsa:2048 -keyout a.key -out b; openssl x509 -in a -noout",
    "twine upload dist/*; twine check -p; nmcli dev wifi list; htpasswd /etc/users me",
    "net user me /add; xfreerdp /v:host /port:3389; rabbitmqctl add_user me",
    "requirepass is set. The requirepass option. wpa-psk $PSK",
    "Private-Lines: 8\nThe number of lines that follow",
    f"{some(40, 'a-f0-9')} is a hash, {some(32, 'a-f0-9')}-user a name, and {some(60)} a word",
    "https://github.com/x.git https://me@github.com/ https://a-host-of-some-name.example.org:80/",
    "/hooks/pre-commit-configuration and https://hc-ping.com/documentation",
    "Passwort: \nKennwort:\nMot de passe : \nПароль: ",
]
