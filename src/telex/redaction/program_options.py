"""The table of programs that take a secret by an option whose name does not say so.

`-p` is a password for `sshpass` and a port for `ssh`, so it counts only after the program's name.
Options with a clear name, such as `--password`, need no program and are in `rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NEXT: Final = "next"
"""The value is the next word, or the rest of this one."""
SAME: Final = "same"
"""The value is the rest of the word; without one, the program asks for the value."""
USER: Final = "user"
"""The value is `user:password`."""
PERCENT: Final = "percent"
"""The value is `user%password`."""
COMMA: Final = "comma"
"""The value is `user,password`."""
APART: Final = "apart"
"""The value is the next word; joined to the option it would be another option's name."""
COUNTED: Final = "counted"
"""The option is a flag that counts as a word, where words are counted."""

# The options of each program. `#2` is the second word that is no option; an option that ends in a
# colon has its value in the same word.
_TABLE: Final[tuple[tuple[tuple[str, ...], Mapping[str, str]], ...]] = (
    # Databases and queues
    (("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck"), {"-p": SAME}),
    (("mysqlshow", "mysqlbinlog", "mysqlsh", "mysqlslap", "mysqlpump", "mycli"), {"-p": SAME}),
    (("mysql_upgrade", "mydumper", "myloader", "xtrabackup", "mariabackup"), {"-p": SAME}),
    (("mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import", "mariadb-check"), {"-p": SAME}),
    (("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport"), {"-p": NEXT}),
    (("mongoimport", "mongostat", "mongotop", "mongofiles", "cqlsh", "beeline"), {"-p": NEXT}),
    (("nodetool", "dsetool", "sstableloader"), {"-pw": APART}),
    (("sqlcmd", "bcp", "isql", "osql", "tsql", "mssql-cli"), {"-P": NEXT}),
    (("hdbsql", "cypher-shell"), {"-p": NEXT}),
    (("influx", "influxd"), {"-password": NEXT, "-t": APART}),
    (("redis-cli", "valkey-cli", "keydb-cli"), {"-a": NEXT, "--pass": NEXT}),
    (("rabbitmqadmin",), {"-p": NEXT}),
    (("rabbitmqctl add_user", "rabbitmqctl change_password"), {"#2": NEXT}),
    (("rabbitmqctl authenticate_user",), {"#2": NEXT}),
    (("mosquitto_pub", "mosquitto_sub", "mosquitto_rr"), {"-P": NEXT}),
    (("mosquitto_passwd",), {"#3": NEXT}),
    (("couchbase-cli", "cbbackupmgr", "cbq", "cbimport", "cbexport"), {"-p": NEXT}),
    # Registries and packages
    (("docker login", "podman login", "buildah login", "skopeo login"), {"-p": NEXT}),
    (("nerdctl login", "oras login", "registry login", "az login"), {"-p": NEXT}),
    (("crane auth login", "regctl registry login"), {"-p": NEXT}),
    (("auth login", "acr login", "oc login", "cosign login"), {"-p": NEXT}),
    (("twine upload", "twine register", "poetry publish", "maturin publish"), {"-p": NEXT}),
    (("uv publish",), {"-p": NEXT, "-t": NEXT}),
    (("cargo login", "wandb login", "vault login"), {"#1": NEXT}),
    (("nuget push", "dotnet nuget push", "nuget setapikey"), {"-k": NEXT}),
    (("gh secret set",), {"-b": NEXT}),
    (("cf login", "ibmcloud login", "bx login"), {"-p": NEXT}),
    (("cf auth",), {"#2": NEXT}),
    (("rancher login",), {"-t": NEXT}),
    # Remote computers
    (("sshpass", "rdesktop", "evil-winrm", "ncftp", "hydra", "medusa"), {"-p": NEXT}),
    (("crackmapexec", "netexec", "nxc", "bloodhound-python", "ldapdomaindump"), {"-p": NEXT}),
    (("ncftpget", "ncftpput", "ncftpls"), {"-p": NEXT}),
    (("plink", "pscp", "psftp", "plink.exe", "pscp.exe", "psftp.exe"), {"-pw": APART}),
    (("psexec", "psexec.exe", "psexec64", "psexec64.exe"), {"-p": NEXT}),
    (("PsExec", "PsExec.exe", "PsExec64", "PsExec64.exe"), {"-p": NEXT}),
    (
        ("xfreerdp", "wlfreerdp", "sdl-freerdp", "wfreerdp", "xfreerdp3"),
        {"/p:": NEXT, "/gp:": NEXT},
    ),
    (("cmdkey", "cmdkey.exe"), {"/pass:": NEXT, "/p:": NEXT}),
    (("net user", "net.exe user"), {"#2": NEXT}),
    (("schtasks", "schtasks.exe", "taskkill", "tasklist", "systeminfo"), {"/rp": NEXT, "/p": NEXT}),
    (("lftp",), {"-u": COMMA}),
    (("curl",), {"-u": USER, "--user": USER, "-U": USER, "--proxy-user": USER}),
    (("http", "https", "xh", "httpie"), {"-a": USER, "--auth": USER}),
    (("wget",), {"--http-passwd": NEXT}),
    (("snmpwalk", "snmpget", "snmpset", "snmpbulkwalk", "snmpgetnext"), {"-A": NEXT, "-X": NEXT}),
    (("snmptrap", "snmptable", "snmpstatus"), {"-A": NEXT, "-X": NEXT}),
    (("ipmitool",), {"-P": NEXT}),
    (("ipmipower", "ipmi-console", "ipmi-sensors", "bmc-info", "racadm"), {"-p": NEXT}),
    (("smbclient", "smbmap", "rpcclient", "winexe", "smbget"), {"-U": PERCENT, "--user": PERCENT}),
    (("wmic", "wmic.exe", "net rpc", "net ads", "smbcacls"), {"-U": PERCENT, "/password:": NEXT}),
    (
        ("nmcli",),
        {
            "password": APART,
            "wifi-sec.psk": APART,
            "802-11-wireless-security.psk": APART,
            "802-1x.password": APART,
            "wifi-sec.wep-key0": APART,
        },
    ),
    (("iwctl",), {"--passphrase": NEXT, "-P": NEXT}),
    (("wpa_passphrase",), {"#2": NEXT}),
    # Directories and accounts
    (("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"), {"-w": NEXT}),
    (("ldapcompare", "ldapmodrdn", "ldapexop", "dsconf", "dsidm"), {"-w": NEXT}),
    (("ldappasswd",), {"-w": NEXT, "-s": NEXT, "-a": NEXT}),
    (("slappasswd",), {"-s": NEXT}),
    (("ipa-client-install", "ipa-server-install", "ipa-replica-install"), {"-w": NEXT, "-p": NEXT}),
    (("useradd", "usermod", "groupmod", "groupadd"), {"-p": NEXT}),
    (("htpasswd",), {"-n": COUNTED, "#3": NEXT}),
    (("x11vnc",), {"-passwd": NEXT, "-storepasswd": APART}),
    (("security unlock-keychain", "security create-keychain"), {"-p": NEXT}),
    (("security add-generic-password", "security add-internet-password"), {"-w": NEXT}),
    (("security set-key-partition-list",), {"-k": NEXT}),
    (("security import", "security export"), {"-P": NEXT}),
    # Archives, keys and files
    (("zip", "unzip", "zipcloak"), {"-P": NEXT}),
    (("7z", "7za", "7zz", "7zr", "rar", "unrar"), {"-p": SAME}),
    (("pdftotext", "pdftoppm", "pdfinfo", "pdfimages"), {"-upw": APART, "-opw": APART}),
    (("openssl",), {"-k": APART, "-K": APART}),
    (("ssh-keygen",), {"-N": NEXT, "-P": NEXT}),
    (("keytool", "jarsigner"), {"-storepass": NEXT, "-keypass": NEXT, "-srcstorepass": NEXT}),
    (("signtool", "signtool.exe", "osslsigncode"), {"/p": NEXT, "-pass": APART}),
    (("veracrypt", "truecrypt"), {"-p": NEXT}),
    (("rclone obscure",), {"#1": NEXT}),
    (("steghide",), {"-p": NEXT}),
)

COMMANDS: Final = {program: options for programs, options in _TABLE for program in programs}

WITHOUT_SECRETS: Final = frozenset(
    {"autossh", "mosh", "rsync", "scp", "sftp", "ssh", "ssh-copy-id"}
)
"""Programs that `sshpass` and others start; options after their names belong to them."""
