"""Programs that take a secret as an argument, by an option that means something else elsewhere.

`-p` is a password for `sshpass` and a port for `ssh`, so it counts only after the program's name.
Options whose name says it, such as `--password`, need no program and are in `rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NEXT: Final = "next"
"""The value is the next word, or the rest of this one."""
SAME: Final = "same"
"""The value is the rest of the word; alone, the option asks for it."""
USER: Final = "user"
"""`user:password`."""
PERCENT: Final = "percent"
"""`user%password`."""

_TABLE: Final[tuple[tuple[tuple[str, ...], Mapping[str, str]], ...]] = (
    (("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck"), {"-p": SAME}),
    (("mysqlshow", "mysqlbinlog", "mysqlsh", "mariadb", "mariadb-dump"), {"-p": SAME}),
    (("sshpass", "rdesktop", "evil-winrm", "ncftp", "hydra"), {"-p": NEXT}),
    (("psexec", "psexec.exe", "psexec64", "psexec64.exe"), {"-p": NEXT}),
    (("PsExec", "PsExec.exe", "PsExec64", "PsExec64.exe"), {"-p": NEXT}),
    (("curl",), {"-u": USER, "--user": USER, "-U": USER, "--proxy-user": USER}),
    (("http", "https", "xh", "httpie"), {"-a": USER, "--auth": USER}),
    (("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"), {"-w": NEXT}),
    (("ldapcompare", "ldapmodrdn"), {"-w": NEXT}),
    (("ldappasswd",), {"-w": NEXT, "-s": NEXT, "-a": NEXT}),
    (("redis-cli",), {"-a": NEXT, "--pass": NEXT}),
    (("docker login", "podman login", "buildah login", "skopeo login"), {"-p": NEXT}),
    (("nerdctl login", "oras login", "registry login", "az login"), {"-p": NEXT}),
    (("auth login", "acr login", "oc login"), {"-p": NEXT}),
    (("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport"), {"-p": NEXT}),
    (("mongoimport", "mongostat", "mongotop", "cqlsh", "beeline"), {"-p": NEXT}),
    (("sqlcmd", "bcp", "isql", "osql", "tsql"), {"-P": NEXT}),
    (("ipmitool", "mosquitto_pub", "mosquitto_sub"), {"-P": NEXT}),
    (("zip", "unzip", "zipcloak"), {"-P": NEXT}),
    (("7z", "7za", "7zz", "7zr", "rar", "unrar"), {"-p": SAME}),
    (("smbclient", "smbmap", "rpcclient", "winexe", "smbget"), {"-U": PERCENT, "--user": PERCENT}),
    (("keytool", "jarsigner"), {"-storepass": NEXT, "-keypass": NEXT, "-srcstorepass": NEXT}),
    (("snmpwalk", "snmpget", "snmpset"), {"-A": NEXT, "-X": NEXT}),
)

COMMANDS: Final = {program: options for programs, options in _TABLE for program in programs}

WITHOUT_SECRETS: Final = frozenset(
    {"autossh", "mosh", "rsync", "scp", "sftp", "ssh", "ssh-copy-id"}
)
"""What `sshpass` and its like start: after these words an option is theirs."""
