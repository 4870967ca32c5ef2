"""The table of token families: credentials of providers with their fixed beginning.

A family has a prefix, an alphabet and a length, as the provider's own pages document them. The
prefix is public and rare, so it identifies the credential anywhere, with or without a label. To add
a provider, add a row: `tests/redaction/test_families.py` makes true and false examples of every
row, and `rules` makes the rules.

Nothing is compiled here; `rules` reads the table once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ALNUM: Final = "A-Za-z0-9"
WORD: Final = r"A-Za-z0-9_\-"
DOTS: Final = r"A-Za-z0-9_.\-"
SNAKE: Final = "A-Za-z0-9_"
LOWER: Final = "a-z0-9"
UPPER: Final = "A-Z0-9"
HEX: Final = "a-f0-9"
ANY_HEX: Final = "A-Fa-f0-9"
BASE64: Final = "A-Za-z0-9+/="
URL_BASE64: Final = r"A-Za-z0-9_=\-"
ANY_BASE64: Final = r"A-Za-z0-9_.+/=\-"
UUID: Final = r"A-Fa-f0-9\-"
LETTERS: Final = "A-Za-z"
PATH: Final = r"A-Za-z0-9_.@/%=\-"

HIDDEN_PREFIXES: Final = frozenset(
    (
        *("sk-", "AKIA", "ASIA", "ABIA", "ACCA", "AIza", "ya29.", "GOCSPX-"),
        *("dop_v1_", "doo_v1_", "dor_v1_"),
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        *("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"),
        *("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
        *("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
        *("npm_", "pypi-AgE", "dckr_pat_", "dckr_oat_", "hf_", "SG.", "hvs.", "hvb."),
        *("AGE-SECRET-KEY-1",),
    )
)
"""Prefixes that are hidden with the rest, because clients have always seen them so. To hide a
prefix, a stream must hold back every word that may become it, from its first letter on. A prefix is
public, so no more of them are hidden."""

ENOUGH_CHARS: Final = 20
"""This many characters after the prefix are enough, even of a longer token: a token that is cut off
by the width of a column is still a secret."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of credential of one provider: a row of the table."""

    id: str
    provider: str
    source: str
    """The provider's page about it."""
    prefix: str
    """The beginning of the credential. It stays readable, unless it is in `HIDDEN_PREFIXES`."""
    rest: str
    """The alphabet of the rest, as in a set of a regular expression."""
    length: int
    """The minimum length of the rest."""
    full_length: bool = False
    """Whether the full length must come and look random, because the prefix is short or a word."""
    lead: str = ""
    """A pattern in the place of a prefix, for a credential whose fixed part is not at its
    beginning. The pattern and the text before it stay readable; they are public: an id, a host."""

    @property
    def hides_prefix(self) -> bool:
        return self.prefix in HIDDEN_PREFIXES

    @property
    def least(self) -> int:
        """The number of characters of the rest that make it a credential."""
        return self.length if self.full_length else min(self.length, ENOUGH_CHARS)


_FULL_LENGTH: Final = True


def _by_prefix(
    provider: str,
    source: str,
    *rows: tuple[str, str, str, int] | tuple[str, str, str, int, bool],
) -> tuple[Family, ...]:
    """Return families that are known by a prefix. A row is id, prefix, alphabet of the rest, length
    and optionally `_FULL_LENGTH`."""
    return tuple(Family(row[0], provider, source, *row[1:]) for row in rows)


def _by_pattern(
    provider: str, source: str, *rows: tuple[str, str, str, int] | tuple[str, str, str, int, bool]
) -> tuple[Family, ...]:
    """Return families that are known by a pattern, which stays readable. A row is id, pattern,
    alphabet of the rest, length and optionally `_FULL_LENGTH`."""
    return tuple(
        Family(id, provider, source, "", rest, length, bool(whole), lead)
        for id, lead, rest, length, *whole in rows
    )


FORGES: Final = (
    *_by_prefix(
        "GitHub",
        "https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github",
        ("github-personal", "ghp_", SNAKE, 36),
        ("github-oauth", "gho_", SNAKE, 36),
        ("github-user-to-server", "ghu_", SNAKE, 36),
        ("github-server-to-server", "ghs_", SNAKE, 36),
        ("github-refresh", "ghr_", SNAKE, 36),
        ("github-fine-grained", "github_pat_", SNAKE, 82),
    ),
    *_by_prefix(
        "GitLab",
        "https://docs.gitlab.com/security/tokens/",
        ("gitlab-personal", "glpat-", DOTS, 20),
        ("gitlab-oauth-application", "gloas-", WORD, 64),
        ("gitlab-deploy", "gldt-", WORD, 20),
        ("gitlab-runner", "glrt-", DOTS, 20),
        ("gitlab-runner-registration", "GR1348941", WORD, 20),
        ("gitlab-job", "glcbt-", DOTS, 20),
        ("gitlab-trigger", "glptt-", WORD, 40),
        ("gitlab-feed", "glft-", WORD, 20),
        ("gitlab-incoming-mail", "glimt-", WORD, 25),
        ("gitlab-agent", "glagent-", WORD, 50),
        ("gitlab-workspaces", "glwt-", WORD, 20),
        ("gitlab-scim", "glsoat-", WORD, 20),
        ("gitlab-feature-flags", "glffct-", WORD, 20),
    ),
    *_by_pattern(
        "GitLab",
        "https://docs.gitlab.com/security/tokens/",
        ("gitlab-session", "_gitlab_session=", LOWER, 32),
    ),
    *_by_prefix(
        "Bitbucket",
        "https://support.atlassian.com/bitbucket-cloud/docs/api-tokens/",
        ("bitbucket-app-password", "ATBB", ALNUM, 32),
        ("bitbucket-access", "ATCTT3", URL_BASE64, 180),
        ("bitbucket-server", "BBDC-", r"A-Za-z0-9+/@_\-", 40),
    ),
    *_by_prefix(
        "Atlassian",
        "https://support.atlassian.com/atlassian-account/docs/manage-api-tokens-for-your-atlassian-account/",
        ("atlassian-api", "ATATT3", URL_BASE64, 180),
        ("atlassian-organisation", "ATOATT3", URL_BASE64, 100),
        ("atlassian-client-secret", "ATOA", URL_BASE64, 60, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Sourcegraph",
        "https://sourcegraph.com/docs/cli/how-tos/creating_an_access_token",
        ("sourcegraph-access", "sgp_", SNAKE, 40),
        ("sourcegraph-licence", "slk_", HEX, 64),
        ("sourcegraph-dotcom-user", "sgd_", ANY_HEX, 64),
    ),
)

CLOUDS: Final = (
    *_by_prefix(
        "AWS",
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html",
        ("aws-access-key", "AKIA", UPPER, 16),
        ("aws-temporary-access-key", "ASIA", UPPER, 16),
        ("aws-bearer", "ABIA", UPPER, 16),
        ("aws-context", "ACCA", UPPER, 16),
        ("aws-legacy-access-key", "A3T", UPPER, 17, _FULL_LENGTH),
        ("aws-appsync", "da2-", LOWER, 26, _FULL_LENGTH),
        ("aws-session-legacy", "AQoDYXdz", BASE64, 100),
        ("aws-session", "IQoJb3JpZ2lu", BASE64, 100),
        ("aws-session-v2", "FwoGZXIvYXdz", BASE64, 100),
    ),
    *_by_prefix(
        "Amazon Bedrock",
        "https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html",
        ("bedrock-long-term", "ABSK", BASE64, 109),
        ("bedrock-short-term", "bedrock-api-key-", BASE64, 24),
    ),
    *_by_prefix(
        "Amazon MWS",
        "https://developer-docs.amazon.com/sp-api/docs/migrating-authorization-from-amazon-marketplace-web-service",
        ("amazon-mws", "amzn.mws.", UUID, 36),
        ("amazon-oauth-client-secret", "amzn1.oa2-cs.v1.", HEX, 64),
        ("amazon-lwa-access", "Atza|", r"A-Za-z0-9_|\-", 40),
        ("amazon-lwa-refresh", "Atzr|", r"A-Za-z0-9_|\-", 40),
    ),
    *_by_prefix(
        "Google Cloud",
        "https://cloud.google.com/docs/authentication/api-keys",
        ("google-api-key", "AIza", WORD, 35),
        ("google-bound-api-key", "AQ.Ab8RN6", WORD, 40),
    ),
    *_by_prefix(
        "Google",
        "https://developers.google.com/identity/protocols/oauth2",
        ("google-access", "ya29.", DOTS, 20),
        ("google-client-secret", "GOCSPX-", WORD, 28),
        ("google-refresh", "1//0", WORD, 40),
    ),
    *_by_prefix(
        "Firebase",
        "https://firebase.google.com/docs/cloud-messaging/auth-server",
        ("firebase-messaging", "AAAA", r"A-Za-z0-9_:\-", 148, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Microsoft Entra",
        "https://learn.microsoft.com/en-us/entra/identity-platform/how-to-add-credentials",
        ("entra-client-secret", "[0-9]Q~", r"A-Za-z0-9_~.\-", 31),
    ),
    *_by_pattern(
        "Google Cloud Storage",
        "https://cloud.google.com/storage/docs/authentication/signatures",
        ("google-signature", "X-Goog-Signature=", ANY_HEX, 64),
    ),
    *_by_pattern(
        "Amazon S3",
        "https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html",
        ("amazon-signature", "X-Amz-Signature=", ANY_HEX, 64),
    ),
    *_by_pattern(
        "Azure",
        "https://learn.microsoft.com/en-us/azure/storage/common/storage-sas-overview",
        ("azure-shared-access-signature", "[?&]sig=", r"A-Za-z0-9%+/=\-", 43),
    ),
    *_by_prefix(
        "DigitalOcean",
        "https://docs.digitalocean.com/reference/api/create-personal-access-token/",
        ("digitalocean-personal", "dop_v1_", ANY_HEX, 64),
        ("digitalocean-oauth", "doo_v1_", ANY_HEX, 64),
        ("digitalocean-refresh", "dor_v1_", ANY_HEX, 64),
        ("digitalocean-spaces", "DO00", UPPER, 16),
    ),
    *_by_prefix(
        "Heroku",
        "https://devcenter.heroku.com/articles/platform-api-quickstart",
        ("heroku-api", "HRKU-", WORD, 36),
    ),
    *_by_prefix(
        "Fly.io",
        "https://fly.io/docs/security/tokens/",
        ("fly-macaroon", "fm2_", BASE64, 40),
        ("fly-macaroon-v1-attenuated", "fm1a_", BASE64, 40),
        ("fly-macaroon-v1-root", "fm1r_", BASE64, 40),
        ("fly-oauth", "fo1_", WORD, 43),
    ),
    *_by_prefix(
        "Cloudflare",
        "https://developers.cloudflare.com/fundamentals/api/get-started/create-token/",
        ("cloudflare-origin-ca", "v1.0-", r"a-f0-9\-", 100),
        ("cloudflare-user", "cfut_", ALNUM, 40),
        ("cloudflare-account", "cfat_", ALNUM, 40),
        ("cloudflare-global-key", "cfk_", ALNUM, 40),
    ),
    *_by_prefix(
        "Vercel",
        "https://vercel.com/docs/rest-api",
        ("vercel-blob", "vercel_blob_rw_", SNAKE, 30),
        ("vercel-personal", "vcp_", ALNUM, 50),
        ("vercel-integration", "vci_", ALNUM, 50),
        ("vercel-application", "vca_", ALNUM, 50),
        ("vercel-refresh", "vcr_", ALNUM, 50),
        ("vercel-gateway", "vck_", ALNUM, 50),
    ),
    *_by_prefix(
        "Netlify",
        "https://docs.netlify.com/api/get-started/",
        ("netlify-personal", "nfp_", ALNUM, 36),
        ("netlify-oauth", "nfo_", ALNUM, 36),
        ("netlify-build", "nfb_", ALNUM, 36),
        ("netlify-user", "nfu_", ALNUM, 36),
        ("netlify-cli", "nfc_", ALNUM, 36),
    ),
    *_by_prefix(
        "Render",
        "https://render.com/docs/api",
        ("render-api", "rnd_", ALNUM, 28),
    ),
    *_by_prefix(
        "Scaleway",
        "https://www.scaleway.com/en/docs/iam/how-to/create-api-keys/",
        ("scaleway-access-key", "SCW", UPPER, 17, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Scalingo",
        "https://developers.scalingo.com/index#authentication",
        ("scalingo-api", "tk-us-", WORD, 48),
    ),
    *_by_prefix(
        "Alibaba Cloud",
        "https://www.alibabacloud.com/help/en/ram/user-guide/create-an-accesskey-pair",
        ("alibaba-access-key", "LTAI", ALNUM, 12),
        ("alibaba-temporary-access-key", "STS.", ALNUM, 20),
    ),
    *_by_prefix(
        "Tencent Cloud",
        "https://www.tencentcloud.com/document/product/598/32675",
        ("tencent-secret-id", "AKID", ALNUM, 32, _FULL_LENGTH),
        ("tencent-international-secret-id", "IKID", ALNUM, 32, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Volcengine",
        "https://www.volcengine.com/docs/6291/65568",
        ("volcengine-access-key", "AKLT", r"A-Za-z0-9_=\-", 24),
        ("volcengine-temporary-access-key", "AKTP", r"A-Za-z0-9_=\-", 24),
    ),
    *_by_prefix(
        "Yandex Cloud",
        "https://yandex.cloud/en/docs/iam/concepts/authorization/api-key",
        ("yandex-api-key", "AQVN", WORD, 35),
        ("yandex-static-key", "YCA", WORD, 22, _FULL_LENGTH),
        ("yandex-static-secret", "YCM", WORD, 37, _FULL_LENGTH),
        ("yandex-iam", "t1.9euelZ", r"A-Za-z0-9_.=\-", 60),
        ("yandex-oauth", "y0_", WORD, 55),
    ),
    *_by_prefix(
        "OpenShift",
        "https://docs.redhat.com/en/documentation/openshift_container_platform/4.17/html/authentication_and_authorization/managing-oauth-access-tokens",
        ("openshift-oauth", "sha256~", WORD, 43),
    ),
    *_by_prefix(
        "PlanetScale",
        "https://planetscale.com/docs/api/reference/service-tokens",
        ("planetscale-service", "pscale_tkn_", ANY_BASE64, 32),
        ("planetscale-oauth", "pscale_oauth_", ANY_BASE64, 32),
        ("planetscale-password", "pscale_pw_", ANY_BASE64, 32),
        ("planetscale-access", "pscale_api_", ANY_BASE64, 32),
    ),
    *_by_prefix(
        "Supabase",
        "https://supabase.com/docs/guides/api/api-keys",
        ("supabase-personal", "sbp_", SNAKE, 40),
        ("supabase-secret", "sb_secret_", SNAKE, 22),
    ),
    *_by_prefix("Neon", "https://neon.com/docs/manage/api-keys", ("neon-api", "napi_", LOWER, 40)),
    *_by_prefix(
        "ClickHouse Cloud",
        "https://clickhouse.com/docs/cloud/manage/openapi",
        ("clickhouse-secret", "4b1d", ALNUM, 38, _FULL_LENGTH),
    ),
    *_by_prefix(
        "MongoDB Atlas",
        "https://www.mongodb.com/docs/atlas/configure-api-access/",
        ("mongodb-service-account", "mdb_sa_sk_", WORD, 40),
    ),
    *_by_prefix(
        "Upstash",
        "https://upstash.com/docs/qstash/howto/signature",
        ("upstash-signing", "sig_", ALNUM, 28, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Railway",
        "https://docs.railway.com/guides/public-api",
        ("railway-workspace", "rw_Fe26.2**", r"A-Za-z0-9*_\-", 60),
    ),
    *_by_prefix(
        "Aiven",
        "https://aiven.io/docs/platform/howto/create_authentication_token",
        ("aiven-password", "AVNS_", WORD, 15),
    ),
    *_by_prefix(
        "CockroachDB",
        "https://www.cockroachlabs.com/docs/cockroachcloud/managing-access",
        ("cockroachdb-api", "CCDB1_", SNAKE, 60),
    ),
    *_by_prefix(
        "Elastic Cloud",
        "https://www.elastic.co/docs/deploy-manage/api-keys/elastic-cloud-api-keys",
        ("elastic-cloud-api", "essu_", BASE64, 60),
    ),
    *_by_prefix(
        "Docker Swarm",
        "https://docs.docker.com/engine/swarm/join-nodes/",
        ("swarm-join", "SWMTKN-1-", r"A-Za-z0-9\-", 75),
    ),
    *_by_pattern(
        "K3s",
        "https://docs.k3s.io/cli/token",
        ("k3s-token", "K10[a-f0-9]{64}::(?:server|node):", ALNUM, 16),
    ),
    *_by_pattern(
        "Rancher",
        "https://ranchermanager.docs.rancher.com/reference-guides/user-settings/api-keys",
        ("rancher-api", "token-[a-z0-9]{5}:", LOWER, 54),
    ),
    *_by_prefix(
        "Salad",
        "https://docs.salad.com/reference/api-usage",
        ("salad-cloud", "salad_cloud_", SNAKE, 16),
    ),
)

PAYMENT: Final = (
    *_by_prefix(
        "Stripe",
        "https://docs.stripe.com/keys",
        ("stripe-secret-live", "sk_live_", SNAKE, 10),
        ("stripe-secret-test", "sk_test_", SNAKE, 10),
        ("stripe-secret-prod", "sk_prod_", SNAKE, 10),
        ("stripe-restricted-live", "rk_live_", SNAKE, 10),
        ("stripe-restricted-test", "rk_test_", SNAKE, 10),
        ("stripe-restricted-prod", "rk_prod_", SNAKE, 10),
        ("stripe-organisation", "sk_org_", SNAKE, 20),
        ("stripe-webhook", "whsec_", BASE64, 24),
        ("stripe-ephemeral-live", "ek_live_", ALNUM, 20),
        ("stripe-ephemeral-test", "ek_test_", ALNUM, 20),
    ),
    *_by_pattern(
        "Stripe",
        "https://docs.stripe.com/api/payment_intents/object",
        ("stripe-intent", "_secret_", ALNUM, 24, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Square",
        "https://developer.squareup.com/docs/build-basics/access-tokens",
        ("square-access", "EAAA", WORD, 22, _FULL_LENGTH),
        ("square-legacy-access", "sq0atp-", WORD, 22),
        ("square-client-secret", "sq0csp-", WORD, 43),
        ("square-application", "sq0idp-", WORD, 22),
    ),
    *_by_pattern(
        "PayPal",
        "https://developer.paypal.com/api/rest/authentication/",
        ("paypal-braintree", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$", HEX, 32),
        ("braintree-tokenisation", "(?:production|sandbox)_[a-z0-9]{8}_", LOWER, 16, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Shopify",
        "https://shopify.dev/docs/apps/build/authentication-authorization",
        ("shopify-access", "shpat_", ANY_HEX, 32),
        ("shopify-shared-secret", "shpss_", ANY_HEX, 32),
        ("shopify-custom-app", "shpca_", ANY_HEX, 32),
        ("shopify-private-app", "shppa_", ANY_HEX, 32),
        ("shopify-partner", "prtapi_", ANY_HEX, 32),
        ("shopify-theme", "shptka_", ANY_HEX, 32),
        ("shopify-user", "shpua_", ANY_HEX, 32),
        ("shopify-cli", "atkn_", ANY_HEX, 32),
    ),
    *_by_pattern(
        "Plaid",
        "https://plaid.com/docs/api/items/",
        ("plaid-access", "access-(?:sandbox|development|production)-", UUID, 36),
        ("plaid-public", "public-(?:sandbox|development|production)-", UUID, 36),
        ("plaid-link", "link-(?:sandbox|development|production)-", UUID, 36),
    ),
    *_by_prefix(
        "Flutterwave",
        "https://developer.flutterwave.com/v3.0/docs/authentication",
        ("flutterwave-secret-test", "FLWSECK_TEST-", r"A-Za-z0-9\-", 12),
        ("flutterwave-secret", "FLWSECK-", r"A-Za-z0-9\-", 12),
        ("flutterwave-public-test", "FLWPUBK_TEST-", r"A-Za-z0-9\-", 32),
        ("flutterwave-public", "FLWPUBK-", r"A-Za-z0-9\-", 32),
    ),
    *_by_prefix(
        "Razorpay",
        "https://razorpay.com/docs/api/authentication/",
        ("razorpay-live", "rzp_live_", ALNUM, 14),
        ("razorpay-test", "rzp_test_", ALNUM, 14),
    ),
    *_by_prefix(
        "Adyen",
        "https://docs.adyen.com/development-resources/api-credentials/",
        ("adyen-api", "AQE", r"A-Za-z0-9+/=*.\-", 80, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Mollie",
        "https://docs.mollie.com/reference/authentication",
        ("mollie-live", "live_", ALNUM, 30, _FULL_LENGTH),
        ("mollie-test", "test_", ALNUM, 30, _FULL_LENGTH),
        ("mollie-organisation", "access_", ALNUM, 40, _FULL_LENGTH),
    ),
    *_by_prefix(
        "GoCardless",
        "https://developer.gocardless.com/getting-started/api/making-your-first-request/",
        ("gocardless-live", "live_", URL_BASE64, 40, _FULL_LENGTH),
        ("gocardless-sandbox", "sandbox_", URL_BASE64, 40, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Pagar.me",
        "https://docs.pagar.me/docs/chaves-de-acesso",
        ("pagarme-live", "ak_live_", ALNUM, 30),
    ),
    *_by_prefix(
        "Mercado Pago",
        "https://www.mercadopago.com/developers/en/docs/your-integrations/credentials",
        ("mercadopago-access", "APP_USR-", r"A-Za-z0-9\-", 36),
        ("mercadopago-test", "TEST-", r"a-f0-9\-", 60, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Paddle",
        "https://developer.paddle.com/api-reference/about/authentication",
        ("paddle-live", "pdl_live_apikey_", SNAKE, 40),
        ("paddle-sandbox", "pdl_sdbx_apikey_", SNAKE, 40),
        ("paddle-notification", "pdl_ntfset_", SNAKE, 40),
    ),
    *_by_prefix(
        "Checkout.com",
        "https://www.checkout.com/docs/developer-resources/api/api-authentication/api-keys",
        ("checkout-secret", "sk_sbox_", WORD, 20),
    ),
    *_by_prefix(
        "Ramp",
        "https://docs.ramp.com/developer-api/v1/authorization",
        ("ramp-secret", "ramp_sec_", ALNUM, 48),
        ("ramp-id", "ramp_id_", ALNUM, 40),
        ("ramp-business", "ramp_business_tok_", ALNUM, 40),
    ),
    *_by_prefix(
        "eBay",
        "https://developer.ebay.com/api-docs/static/oauth-credentials.html",
        ("ebay-production", "PRD-", r"a-f0-9\-", 36),
        ("ebay-sandbox", "SBX-", r"a-f0-9\-", 36),
    ),
    *_by_prefix(
        "Polar",
        "https://docs.polar.sh/integrate/oat",
        ("polar-personal", "polar_pat_", ALNUM, 30),
        ("polar-organisation", "polar_oat_", ALNUM, 30),
    ),
    *_by_prefix(
        "Onfido",
        "https://documentation.identity.entrust.com/api/latest/",
        ("onfido-live", "api_live.", DOTS, 30),
        ("onfido-live-us", "api_live_us.", DOTS, 30),
        ("onfido-sandbox", "api_sandbox.", DOTS, 30),
    ),
    *_by_prefix(
        "Liveblocks",
        "https://liveblocks.io/docs/api-reference/rest-api-endpoints",
        ("liveblocks-development", "sk_dev_", WORD, 40),
    ),
    *_by_prefix(
        "Persona",
        "https://docs.withpersona.com/api-keys",
        ("persona-production", "persona_production_", UUID, 36),
        ("persona-sandbox", "persona_sandbox_", UUID, 36),
    ),
    *_by_prefix(
        "Samsara",
        "https://developers.samsara.com/docs/authentication",
        ("samsara-api", "samsara_api_", ALNUM, 30),
    ),
)

CHAT: Final = (
    *_by_prefix(
        "Slack",
        "https://docs.slack.dev/authentication/tokens/",
        ("slack-bot", "xoxb-", WORD, 8),
        ("slack-user", "xoxp-", WORD, 8),
        ("slack-workspace", "xoxa-", WORD, 8),
        ("slack-refresh", "xoxr-", WORD, 8),
        ("slack-legacy", "xoxs-", WORD, 8),
        ("slack-cookie", "xoxd-", r"A-Za-z0-9%_+/=\-", 10),
        ("slack-client", "xoxc-", WORD, 8),
        ("slack-configuration-refresh", "xoxe-", WORD, 8),
        ("slack-configuration-access", "xoxe.xox", WORD, 10),
        ("slack-app", "xapp-", WORD, 10),
        ("slack-workflow", "xwfp-", WORD, 10),
    ),
    *_by_pattern(
        "Slack",
        "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/",
        ("slack-legacy-other", "xoxo-[0-9]", WORD, 8),
        ("slack-webhook", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/", PATH, 20),
    ),
    *_by_pattern(
        "Discord",
        "https://discord.com/developers/docs/reference#authentication",
        ("discord-bot", r"[MNO][A-Za-z0-9_-]{17,27}\.[A-Za-z0-9_-]{6}\.", WORD, 27, _FULL_LENGTH),
        (
            "discord-webhook",
            r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{16,20}/",
            WORD,
            30,
        ),
    ),
    *_by_pattern(
        "Feishu and Lark",
        "https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot",
        (
            "feishu-webhook",
            r"open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/(?:v[0-9]/)?hook/",
            WORD,
            20,
        ),
    ),
    *_by_pattern(
        "WeCom",
        "https://developer.work.weixin.qq.com/document/path/91770",
        ("wecom-webhook", r"weixin\.qq\.com/cgi-bin/webhook/send\?key=", UUID, 36),
    ),
    *_by_pattern(
        "Rocket.Chat",
        "https://docs.rocket.chat/docs/integrations",
        ("rocketchat-webhook", "/hooks/[A-Za-z0-9]{17,24}/", ALNUM, 40, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Mattermost",
        "https://developers.mattermost.com/integrate/webhooks/incoming/",
        ("mattermost-webhook", "/hooks/", LOWER, 26, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Discord",
        "https://discord.com/developers/docs/reference#authentication",
        ("discord-mfa", "mfa.", WORD, 84),
    ),
    *_by_pattern(
        "Telegram",
        "https://core.telegram.org/bots/api#authorizing-your-bot",
        ("telegram-bot", "[0-9]{4}:A", WORD, 32, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Twilio",
        "https://www.twilio.com/docs/iam/api-keys",
        ("twilio-api-key", "SK", ANY_HEX, 32, _FULL_LENGTH),
        ("twilio-account", "AC", HEX, 32, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Microsoft Teams",
        "https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook",
        ("teams-webhook", r"webhook\.office\.com/webhookb2/", PATH, 36),
        ("teams-legacy-webhook", r"outlook\.office(?:365)?\.com/webhook/", PATH, 36),
    ),
    *_by_pattern(
        "Google Chat",
        "https://developers.google.com/workspace/chat/quickstart/webhooks",
        (
            "google-chat-webhook",
            r"chat\.googleapis\.com/v1/spaces/[A-Za-z0-9_-]{8,20}/messages\?key=",
            r"A-Za-z0-9_&=%\-",
            39,
        ),
    ),
    *_by_prefix(
        "Meta",
        "https://developers.facebook.com/docs/facebook-login/guides/access-tokens/",
        ("meta-access", "EAA", ALNUM, 80, _FULL_LENGTH),
        ("meta-instagram", "IGQV", WORD, 80),
        ("meta-instagram-login", "IGAA", WORD, 80),
    ),
    *_by_pattern(
        "Meta",
        "https://developers.facebook.com/docs/facebook-login/guides/access-tokens/",
        ("meta-app-access", "[0-9]{4}[|%]", WORD, 27, _FULL_LENGTH),
    ),
    *_by_pattern(
        "X",
        "https://docs.x.com/fundamentals/authentication/oauth-2-0/application-only",
        ("x-bearer", "A{20}", "A-Za-z0-9%", 60, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Courier",
        "https://www.courier.com/docs/reference/intro",
        ("courier-production", "pk_prod_", UPPER, 28),
        ("courier-test", "pk_test_", UPPER, 28),
    ),
    *_by_prefix(
        "Dropbox",
        "https://www.dropbox.com/developers/documentation/http/documentation",
        ("dropbox-short-lived", "sl.", WORD, 120, _FULL_LENGTH),
    ),
    *_by_prefix(
        "PubNub",
        "https://www.pubnub.com/docs/general/setup/account-setup",
        ("pubnub-publish", "pub-c-", UUID, 36),
        ("pubnub-subscribe", "sub-c-", UUID, 36),
        ("pubnub-secret", "sec-c-", BASE64, 40),
    ),
)

BUILDS: Final = (
    *_by_prefix(
        "CircleCI",
        "https://circleci.com/docs/managing-api-tokens/",
        ("circleci-personal", "CCIPAT_", SNAKE, 40),
        ("circleci-project", "CCIPRJ_", SNAKE, 40),
    ),
    *_by_prefix(
        "Buildkite",
        "https://buildkite.com/docs/apis/managing-api-tokens",
        ("buildkite-user", "bkua_", LOWER, 40),
        ("buildkite-agent", "bkat_", ALNUM, 40),
        ("buildkite-cluster", "bkct_", DOTS, 40),
        ("buildkite-packages", "bkpt_", DOTS, 40),
        ("buildkite-oidc", "bkaj_", DOTS, 40),
        ("buildkite-registry", "bkrt_", DOTS, 40),
    ),
    *_by_prefix(
        "Octopus Deploy",
        "https://octopus.com/docs/octopus-rest-api/how-to-create-an-api-key",
        ("octopus-api", "API-", UPPER, 25, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Harness",
        "https://developer.harness.io/docs/platform/automation/api/add-and-manage-api-keys/",
        ("harness-personal", "pat.", DOTS, 66, _FULL_LENGTH),
        ("harness-service", "sat.", DOTS, 66, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Ionic",
        "https://ionic.io/docs/appflow/personal-access-tokens",
        ("ionic-personal", "ion_", LOWER, 42),
    ),
    *_by_prefix(
        "LaunchDarkly",
        "https://launchdarkly.com/docs/home/account/api",
        ("launchdarkly-sdk", "sdk-", UUID, 36),
        ("launchdarkly-api", "api-", UUID, 36),
        ("launchdarkly-mobile", "mob-", UUID, 36),
        ("launchdarkly-relay", "rel-", UUID, 36),
    ),
    *_by_prefix(
        "Statsig",
        "https://docs.statsig.com/sdk-keys/api-keys",
        ("statsig-server", "secret-", ALNUM, 30, _FULL_LENGTH),
        ("statsig-console", "console-", ALNUM, 30, _FULL_LENGTH),
    ),
    *_by_prefix(
        "ConfigCat",
        "https://configcat.com/docs/sdk-reference/overview/",
        ("configcat-sdk", "configcat-sdk-1/", r"A-Za-z0-9_/\-", 40),
    ),
    *_by_prefix(
        "StackHawk", "https://docs.stackhawk.com/apidocs.html", ("stackhawk-api", "hawk.", DOTS, 41)
    ),
    *_by_prefix(
        "Trigger.dev",
        "https://trigger.dev/docs/apikeys",
        ("trigger-development", "tr_dev_", ALNUM, 20),
        ("trigger-production", "tr_prod_", ALNUM, 20),
        ("trigger-personal", "tr_pat_", ALNUM, 20),
    ),
    *_by_prefix(
        "Inngest",
        "https://www.inngest.com/docs/events/creating-an-event-key",
        ("inngest-signing", "signkey-", r"A-Za-z0-9\-", 40),
    ),
)

REGISTRIES: Final = (
    *_by_prefix(
        "npm", "https://docs.npmjs.com/about-access-tokens", ("npm-access", "npm_", ALNUM, 36)
    ),
    *_by_prefix("PyPI", "https://pypi.org/help/#apitoken", ("pypi-upload", "pypi-AgE", WORD, 50)),
    *_by_prefix(
        "RubyGems",
        "https://guides.rubygems.org/api-key-scopes/",
        ("rubygems-api", "rubygems_", ANY_HEX, 48),
    ),
    *_by_prefix(
        "crates.io",
        "https://doc.rust-lang.org/cargo/reference/publishing.html",
        ("crates-api", "cio", ALNUM, 32, _FULL_LENGTH),
    ),
    *_by_prefix(
        "NuGet",
        "https://learn.microsoft.com/en-us/nuget/nuget-org/publish-a-package",
        ("nuget-api", "oy2", LOWER, 43, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Docker Hub",
        "https://docs.docker.com/security/access-tokens/",
        ("docker-personal", "dckr_pat_", WORD, 27),
        ("docker-organisation", "dckr_oat_", WORD, 32),
    ),
    *_by_prefix(
        "JFrog Artifactory",
        "https://jfrog.com/help/r/jfrog-platform-administration-documentation/access-tokens",
        ("artifactory-api", "AKC", ALNUM, 64, _FULL_LENGTH),
        ("artifactory-reference", "cmVmdGtuOj", ALNUM, 50),
        ("artifactory-identity", "cmVmd", ALNUM, 59, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Packagist",
        "https://packagist.com/docs/composer-authentication",
        ("packagist-token", "packagist_", SNAKE, 40, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Clojars",
        "https://github.com/clojars/clojars-web/wiki/Deploy-Tokens",
        ("clojars-deploy", "CLOJARS_", ALNUM, 60),
    ),
    *_by_prefix(
        "JSR",
        "https://jsr.io/docs/api",
        ("jsr-personal", "jsrp_", ALNUM, 40),
        ("jsr-device", "jsrd_", ALNUM, 40),
    ),
    *_by_prefix(
        "Deno Deploy",
        "https://docs.deno.com/deploy/api/",
        ("deno-personal", "ddp_", ALNUM, 36),
        ("deno-organisation", "ddo_", ALNUM, 36),
        ("deno-access", "ddw_", ALNUM, 36),
    ),
)

SECRETS: Final = (
    *_by_prefix(
        "HashiCorp Vault",
        "https://developer.hashicorp.com/vault/docs/concepts/tokens",
        ("vault-service", "hvs.", WORD, 24),
        ("vault-batch", "hvb.", WORD, 100),
        ("vault-recovery", "hvr.", WORD, 24),
        ("vault-legacy-service", "s.", ALNUM, 24, _FULL_LENGTH),
        ("vault-legacy-batch", "b.AAAAAQ", WORD, 100),
    ),
    *_by_pattern(
        "HCP Terraform",
        "https://developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/api-tokens",
        ("terraform-api", r"\.atlasv1\.", URL_BASE64, 60),
    ),
    *_by_prefix(
        "Pulumi",
        "https://www.pulumi.com/docs/pulumi-cloud/access-management/access-tokens/",
        ("pulumi-access", "pul-", ANY_HEX, 40),
    ),
    *_by_prefix(
        "Doppler",
        "https://docs.doppler.com/docs/service-tokens",
        ("doppler-personal", "dp.pt.", ALNUM, 40),
        ("doppler-cli", "dp.ct.", ALNUM, 40),
        ("doppler-service", "dp.st.", DOTS, 40),
        ("doppler-service-account", "dp.sa.", ALNUM, 40),
        ("doppler-scim", "dp.scim.", ALNUM, 40),
        ("doppler-audit", "dp.audit.", ALNUM, 40),
    ),
    *_by_prefix(
        "1Password",
        "https://developer.1password.com/docs/service-accounts/security/",
        ("onepassword-service-account", "ops_eyJ", BASE64, 250),
        ("onepassword-secret-key", "A3-", r"A-Z0-9\-", 31, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Infisical",
        "https://infisical.com/docs/documentation/platform/token",
        ("infisical-service", "st.", DOTS, 60, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Infracost", "https://www.infracost.io/docs/", ("infracost-api", "ico-", ALNUM, 32)
    ),
    *_by_prefix(
        "age",
        "https://age-encryption.org/v1",
        ("age-secret-key", "AGE-SECRET-KEY-1", UPPER, 58),
        ("age-plugin-key", "AGE-PLUGIN-", r"A-Z0-9\-", 30),
    ),
    *_by_prefix(
        "Tailscale",
        "https://tailscale.com/kb/1277/key-prefixes",
        ("tailscale-key", "tskey-", r"A-Za-z0-9\-", 16),
    ),
    *_by_prefix(
        "Defined Networking",
        "https://docs.defined.net/guides/automating-host-creation/",
        ("defined-api", "dnkey-", URL_BASE64, 60),
    ),
    *_by_prefix(
        "Authress",
        "https://authress.io/knowledge-base/docs/authorization/service-clients/secrets-scanning/",
        ("authress-client", "sc_", ANY_BASE64, 60, _FULL_LENGTH),
        ("authress-external", "ext_", ANY_BASE64, 60, _FULL_LENGTH),
        ("authress-service", "scauth_", ANY_BASE64, 60),
        ("authress-key", "authress_", ANY_BASE64, 60),
    ),
    *_by_prefix(
        "Clerk",
        "https://clerk.com/docs/deployments/clerk-environment-variables",
        ("clerk-machine", "ak_", ALNUM, 32, _FULL_LENGTH),
        ("clerk-machine-secret", "mt_", ALNUM, 32, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Stytch",
        "https://stytch.com/docs/api/authentication",
        ("stytch-live", "secret-live-", WORD, 36),
        ("stytch-test", "secret-test-", WORD, 36),
    ),
)

SERVICES: Final = (
    *_by_prefix(
        "Databricks",
        "https://docs.databricks.com/en/dev-tools/auth/pat.html",
        ("databricks-personal", "dapi", r"a-f0-9\-", 32, _FULL_LENGTH),
        ("databricks-oauth-secret", "dose", HEX, 32, _FULL_LENGTH),
        ("databricks-sharing", "dsapi", HEX, 32, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Snyk",
        "https://docs.snyk.io/snyk-api/authentication-for-api",
        ("snyk-user", "snyk_uat.", DOTS, 30),
        ("snyk-service", "snyk_sat.", DOTS, 30),
    ),
    *_by_prefix(
        "SonarQube",
        "https://docs.sonarsource.com/sonarqube-server/user-guide/managing-tokens/",
        ("sonar-project", "sqp_", ANY_HEX, 40),
        ("sonar-user", "squ_", ANY_HEX, 40),
        ("sonar-global", "sqa_", ANY_HEX, 40),
        ("sonar-cloud", "sqco_", ALNUM, 59),
        ("sonar-badge", "sqb_", ANY_HEX, 40),
    ),
    *_by_prefix(
        "Grafana",
        "https://grafana.com/docs/grafana/latest/administration/service-accounts/",
        ("grafana-cloud", "glc_", BASE64, 32),
        ("grafana-service-account", "glsa_", SNAKE, 41),
        ("grafana-api", "eyJrIjoi", BASE64, 60),
    ),
    *_by_prefix(
        "Sentry",
        "https://docs.sentry.io/account/auth-tokens/",
        ("sentry-organisation", "sntrys_", r"A-Za-z0-9+/=_\-", 60),
        ("sentry-user", "sntryu_", ANY_HEX, 64),
        ("sentry-application", "sntrya_", ANY_HEX, 64),
        ("sentry-integration", "sntryi_", ANY_HEX, 64),
    ),
    *_by_prefix(
        "New Relic",
        "https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/",
        ("newrelic-user", "NRAK-", ALNUM, 27),
        ("newrelic-browser", "NRJS-", HEX, 19),
        ("newrelic-browser-licence", "NRBR-", HEX, 19),
        ("newrelic-insert", "NRII-", WORD, 25),
        ("newrelic-query", "NRIQ-", WORD, 25),
        ("newrelic-admin", "NRAA-", ALNUM, 27),
        ("newrelic-rest", "NRRA-", ANY_HEX, 40),
        ("newrelic-synthetics", "NRSP-", ALNUM, 27),
    ),
    *_by_prefix(
        "Datadog",
        "https://docs.datadoghq.com/account_management/api-app-keys/",
        ("datadog-client", "pub", HEX, 32, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Dynatrace",
        "https://docs.dynatrace.com/docs/manage/identity-access-management/access-tokens-and-oauth-clients/access-tokens",
        ("dynatrace-token", r"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{8,24}\.", ALNUM, 60),
    ),
    *_by_prefix(
        "Postman",
        "https://learning.postman.com/docs/developer/postman-api/authentication/",
        ("postman-api", "PMAK-", WORD, 58),
        ("postman-collection", "PMAT-", ALNUM, 26),
    ),
    *_by_prefix(
        "Linear",
        "https://linear.app/developers/graphql",
        ("linear-api", "lin_api_", ALNUM, 32),
        ("linear-oauth", "lin_oauth_", ALNUM, 32),
        ("linear-webhook", "lin_wh_", ALNUM, 32),
    ),
    *_by_prefix(
        "Notion",
        "https://developers.notion.com/reference/authentication",
        ("notion-integration", "ntn_", ALNUM, 43),
        ("notion-legacy-integration", "secret_", ALNUM, 43, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Airtable",
        "https://airtable.com/developers/web/guides/personal-access-tokens",
        ("airtable-personal", r"pat[A-Za-z0-9]{14}\.", ANY_HEX, 62),
    ),
    *_by_prefix(
        "Figma",
        "https://www.figma.com/developers/api#access-tokens",
        ("figma-personal", "figd_", URL_BASE64, 38),
        ("figma-plan", "figp_", URL_BASE64, 38),
        ("figma-oauth", "figo_", URL_BASE64, 38),
        ("figma-refresh", "figor_", URL_BASE64, 38),
        ("figma-user", "figu_", URL_BASE64, 38),
        ("figma-user-refresh", "figur_", URL_BASE64, 38),
    ),
    *_by_prefix(
        "Contentful",
        "https://www.contentful.com/developers/docs/references/authentication/",
        ("contentful-personal", "CFPAT-", WORD, 43),
    ),
    *_by_prefix(
        "Contentstack",
        "https://www.contentstack.com/docs/developers/create-tokens/types-of-tokens",
        ("contentstack-management", "cs", HEX, 40, _FULL_LENGTH),
        ("contentstack-delivery", "blt", HEX, 16, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Mailgun",
        "https://documentation.mailgun.com/docs/mailgun/api-reference/authentication/",
        ("mailgun-private", "key-", ALNUM, 32, _FULL_LENGTH),
        ("mailgun-public", "pubkey-", HEX, 32),
    ),
    *_by_prefix(
        "SendGrid",
        "https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys",
        ("sendgrid-api", "SG.", ANY_BASE64, 32),
    ),
    *_by_prefix(
        "Brevo",
        "https://developers.brevo.com/docs/how-it-works",
        ("brevo-api", "xkeysib-", r"A-Za-z0-9\-", 64),
        ("brevo-smtp", "xsmtpsib-", r"A-Za-z0-9\-", 64),
    ),
    *_by_prefix(
        "Resend",
        "https://resend.com/docs/api-reference/introduction",
        ("resend-api", "re_", SNAKE, 30, _FULL_LENGTH),
    ),
    *_by_prefix(
        "MailerSend",
        "https://developers.mailersend.com/general.html",
        ("mailersend-api", "mlsn.", ALNUM, 40),
    ),
    *_by_prefix(
        "Klaviyo",
        "https://developers.klaviyo.com/en/docs/authenticate_",
        ("klaviyo-private", "pk_", SNAKE, 34, _FULL_LENGTH),
    ),
    *_by_prefix(
        "HubSpot",
        "https://developers.hubspot.com/docs/guides/apps/private-apps/overview",
        ("hubspot-private-eu", "pat-eu1-", UUID, 36),
        ("hubspot-private-na", "pat-na1-", UUID, 36),
        ("hubspot-private-na2", "pat-na2-", UUID, 36),
        ("hubspot-private-ap", "pat-ap1-", UUID, 36),
    ),
    *_by_prefix(
        "Intercom",
        "https://developers.intercom.com/docs/build-an-integration/learn-more/authentication",
        ("intercom-access", "dG9rO", BASE64, 50),
    ),
    *_by_prefix(
        "Close",
        "https://developer.close.com/topics/authentication/",
        ("close-api", "api_", r"A-Za-z0-9.", 45, _FULL_LENGTH),
    ),
    *_by_prefix(
        "ClickUp",
        "https://developer.clickup.com/docs/authentication",
        ("clickup-personal", "pk_", UPPER + "_", 38, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Typeform",
        "https://www.typeform.com/developers/get-started/personal-access-token/",
        ("typeform-personal", "tfp_", r"A-Za-z0-9_.=\-", 40),
    ),
    *_by_prefix(
        "Frame.io",
        "https://developer.frame.io/docs/getting-started/authentication",
        ("frameio-developer", "fio-u-", URL_BASE64, 64),
    ),
    *_by_prefix(
        "ReadMe",
        "https://docs.readme.com/main/reference/intro/authentication",
        ("readme-api", "rdme_", LOWER, 70),
    ),
    *_by_prefix(
        "Shippo",
        "https://docs.goshippo.com/docs/guides_general/authentication/",
        ("shippo-live", "shippo_live_", ANY_HEX, 40),
        ("shippo-test", "shippo_test_", ANY_HEX, 40),
    ),
    *_by_prefix(
        "EasyPost",
        "https://docs.easypost.com/docs/authentication",
        ("easypost-live", "EZAK", ALNUM, 54),
        ("easypost-test", "EZTK", ALNUM, 54),
    ),
    *_by_prefix(
        "Duffel",
        "https://duffel.com/docs/api/overview/authentication",
        ("duffel-live", "duffel_live_", URL_BASE64, 43),
        ("duffel-test", "duffel_test_", URL_BASE64, 43),
    ),
    *_by_prefix(
        "Lob",
        "https://docs.lob.com/#tag/Authentication",
        ("lob-live", "live_", HEX, 35, _FULL_LENGTH),
        ("lob-test", "test_", HEX, 35, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Flexport", "https://developers.flexport.com/", ("flexport-logistics", "shltm_", WORD, 40)
    ),
    *_by_prefix(
        "Prefect",
        "https://docs.prefect.io/v3/manage/cloud/manage-users/api-keys",
        ("prefect-user", "pnu_", ALNUM, 36),
        ("prefect-bot", "pnb_", ALNUM, 36),
    ),
    *_by_prefix(
        "PostHog",
        "https://posthog.com/docs/api",
        ("posthog-personal", "phx_", SNAKE, 43),
        ("posthog-project", "phc_", SNAKE, 43),
        ("posthog-secure-flags", "phs_", SNAKE, 43),
    ),
    *_by_prefix(
        "Mapbox",
        "https://docs.mapbox.com/help/dive-deeper/access-tokens/",
        ("mapbox-public", "pk.eyJ", DOTS, 60),
        ("mapbox-secret", "sk.eyJ", DOTS, 60),
        ("mapbox-temporary", "tk.eyJ", DOTS, 60),
    ),
    *_by_prefix(
        "ntfy",
        "https://docs.ntfy.sh/config/#access-tokens",
        ("ntfy-access", "tk_", LOWER, 29, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Healthchecks.io",
        "https://healthchecks.io/docs/http_api/",
        ("healthchecks-ping", r"hc-ping\.com/", WORD, 22, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Better Stack",
        "https://betterstack.com/docs/uptime/cron-and-heartbeat-monitor/",
        (
            "betterstack-heartbeat",
            r"better(?:stack|uptime)\.com/api/v1/heartbeat/",
            ALNUM,
            20,
        ),
    ),
    *_by_pattern(
        "Ghost",
        "https://docs.ghost.org/admin-api#token-authentication",
        ("ghost-admin", "[0-9a-f]{24}:", HEX, 64, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Sanity",
        "https://www.sanity.io/docs/http-auth",
        ("sanity-token", "sk[A-Za-z0-9]{14}", ALNUM, 64, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Mailchimp",
        "https://mailchimp.com/developer/marketing/guides/quick-start/",
        ("mailchimp-transactional", "md-", WORD, 22, _FULL_LENGTH),
    ),
    *_by_pattern(
        "Zapier",
        "https://help.zapier.com/hc/en-us/articles/8496288690317",
        ("zapier-webhook", r"hooks\.zapier\.com/hooks/catch/", r"A-Za-z0-9/", 10),
    ),
    *_by_pattern(
        "IFTTT",
        "https://ifttt.com/maker_webhooks",
        (
            "ifttt-webhook",
            r"maker\.ifttt\.com/trigger/[A-Za-z0-9_-]{1,40}/(?:json/)?with/key/",
            WORD,
            20,
        ),
    ),
    *_by_pattern(
        "Make",
        "https://help.make.com/webhooks",
        ("make-webhook", r"hook\.(?:eu1|eu2|us1|us2)\.make\.com/", LOWER, 20),
    ),
    *_by_pattern(
        "n8n", "https://docs.n8n.io/api/authentication/", ("n8n-api", "n8n_api_", DOTS, 30)
    ),
    *_by_pattern(
        "PagerDuty",
        "https://developer.pagerduty.com/docs/events-api-v2-overview",
        ("pagerduty-integration", r"events\.pagerduty\.com/integration/", HEX, 20),
    ),
    *_by_pattern(
        "Tines",
        "https://www.tines.com/docs/actions/types/webhook/",
        ("tines-webhook", r"tines\.com/webhook/", r"a-z0-9/", 40),
    ),
    *_by_pattern(
        "Salesforce",
        "https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/intro_oauth_and_connected_apps.htm",
        ("salesforce-session", "00D[A-Za-z0-9]{12,15}!", r"A-Za-z0-9_.", 40),
    ),
    *_by_prefix(
        "Salesforce",
        "https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/intro_oauth_and_connected_apps.htm",
        ("salesforce-refresh", "5Aep861", DOTS, 40),
    ),
    *_by_prefix(
        "Adobe",
        "https://developer.adobe.com/developer-console/docs/guides/authentication/",
        ("adobe-client-secret", "p8e-", r"A-Za-z0-9_\-", 32),
    ),
    *_by_prefix(
        "Adafruit IO",
        "https://io.adafruit.com/api/docs/#authentication",
        ("adafruit-io", "aio_", ALNUM, 28),
    ),
    *_by_prefix(
        "Ubidots",
        "https://docs.ubidots.com/reference/authentication",
        ("ubidots-token", "BBFF-", ALNUM, 30),
    ),
    *_by_prefix(
        "Voiceflow",
        "https://docs.voiceflow.com/reference/authentication",
        ("voiceflow-key", "VF.", DOTS, 40),
    ),
    *_by_prefix(
        "Fullstory",
        "https://developer.fullstory.com/server/getting-started/",
        ("fullstory-key", "na1.", BASE64, 60, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Beamer",
        "https://www.getbeamer.com/api",
        ("beamer-api", "b_", r"A-Za-z0-9=_/+\-", 44, _FULL_LENGTH),
    ),
    *_by_prefix(
        "SettleMint",
        "https://console.settlemint.com/documentation/platform-components/security-and-authentication/personal-access-tokens",
        ("settlemint-personal", "sm_pat_", ALNUM, 16),
        ("settlemint-application", "sm_aat_", ALNUM, 16),
        ("settlemint-service", "sm_sat_", ALNUM, 16),
    ),
    *_by_prefix(
        "42 Intra",
        "https://api.intra.42.fr/apidoc/guides/getting_started",
        ("intra42-secret", "s-s4t2ud-", ANY_HEX, 64),
        ("intra42-secret-af", "s-s4t2af-", ANY_HEX, 64),
    ),
    *_by_prefix(
        "Dependency-Track",
        "https://docs.dependencytrack.org/integrations/rest-api/",
        ("dependencytrack-api", "odt_", SNAKE, 32),
    ),
    *_by_prefix(
        "Rootly",
        "https://docs.rootly.com/api-reference/overview",
        ("rootly-api", "rootly_", ANY_HEX, 64),
    ),
    *_by_prefix(
        "Nightfall",
        "https://help.nightfall.ai/developer-api",
        ("nightfall-key", "NF-", ALNUM, 32, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Browserbase",
        "https://docs.browserbase.com/reference/api",
        ("browserbase-live", "bb_live_", WORD, 24),
    ),
    *_by_prefix(
        "Apify",
        "https://docs.apify.com/platform/integrations/api",
        ("apify-api", "apify_api_", ALNUM, 36),
        ("apify-proxy", "apify_proxy_", ALNUM, 30),
    ),
    *_by_prefix(
        "Val Town",
        "https://docs.val.town/api/authentication/",
        ("valtown-token", "vtwn_", ALNUM, 24),
    ),
    *_by_prefix(
        "RevenueCat",
        "https://www.revenuecat.com/docs/projects/authentication",
        ("revenuecat-google", "goog_", LETTERS, 27),
        ("revenuecat-apple", "appl_", LETTERS, 27),
        ("revenuecat-secret", "atk_", ALNUM, 30),
    ),
    *_by_prefix(
        "Unkey",
        "https://www.unkey.com/docs/security/root-keys",
        ("unkey-root", "unkey_", ALNUM, 20),
    ),
    *_by_prefix(
        "Tinybird",
        "https://www.tinybird.co/docs/forward/administration/tokens",
        ("tinybird-token", "p.eyJ", DOTS, 60),
    ),
    *_by_prefix(
        "Axiom",
        "https://axiom.co/docs/reference/tokens",
        ("axiom-api", "xaat-", UUID, 36),
        ("axiom-personal", "xapt-", UUID, 36),
    ),
    *_by_prefix(
        "Honeycomb",
        "https://docs.honeycomb.io/configure/environments/manage-api-keys/",
        ("honeycomb-ingest", "hcaik_", ALNUM, 58),
        ("honeycomb-configuration", "hcxik_", ALNUM, 58),
        ("honeycomb-management", "hcamk_", ALNUM, 26),
    ),
    *_by_prefix(
        "Checkly",
        "https://www.checklyhq.com/docs/accounts-and-users/creating-api-key/",
        ("checkly-user", "cu_", HEX, 32, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Cal.com",
        "https://cal.com/docs/api-reference/v2/introduction",
        ("calcom-live", "cal_live_", HEX, 32),
        ("calcom-key", "cal_", HEX, 32),
    ),
    *_by_prefix("Tally", "https://developers.tally.so/", ("tally-api", "tly-", ALNUM, 32)),
    *_by_prefix(
        "Roblox",
        "https://create.roblox.com/docs/cloud/auth/api-keys",
        ("roblox-cookie", "_|WARNING:-", r"A-Za-z0-9_.,|\-", 60),
    ),
    *_by_prefix(
        "VK",
        "https://dev.vk.com/en/api/access-token/getting-started",
        ("vk-access", "vk1.a.", WORD, 80),
    ),
    *_by_prefix(
        "Pinterest",
        "https://developers.pinterest.com/docs/getting-started/set-up-authentication-and-authorization/",
        ("pinterest-access", "pina_", ALNUM, 40),
    ),
    *_by_prefix(
        "Wix",
        "https://dev.wix.com/docs/rest/articles/get-started/api-keys",
        ("wix-api", "IST.", DOTS, 100),
    ),
    *_by_prefix(
        "Lichess",
        "https://lichess.org/api",
        ("lichess-personal", "lip_", ALNUM, 20),
        ("lichess-oauth", "lio_", ALNUM, 32),
    ),
    *_by_prefix("WakaTime", "https://wakatime.com/developers", ("wakatime-api", "waka_", UUID, 36)),
    *_by_prefix(
        "Chromatic",
        "https://www.chromatic.com/docs/setup/",
        ("chromatic-project", "chpt_", ALNUM, 12),
    ),
    *_by_prefix(
        "Riot Games",
        "https://developer.riotgames.com/docs/portal",
        ("riot-api", "RGAPI-", UUID, 36),
    ),
    *_by_prefix(
        "Canva",
        "https://www.canva.dev/docs/connect/authentication/",
        ("canva-secret", "cnvca", WORD, 40),
    ),
    *_by_prefix(
        "LocalStack",
        "https://docs.localstack.cloud/getting-started/auth-token/",
        ("localstack-auth", "ls-", r"A-Za-z0-9\-", 36, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Lightspeed",
        "https://developers.lightspeedhq.com/",
        ("lightspeed-personal", "lsxs_pt_", ALNUM, 30),
    ),
    *_by_prefix(
        "Oculus",
        "https://developers.meta.com/horizon/documentation/",
        ("oculus-access", "OC|", r"0-9A-Za-z|_\-", 40),
    ),
)

MODELS: Final = (
    *_by_prefix(
        "OpenAI",
        "https://platform.openai.com/docs/api-reference/authentication",
        ("openai-project", "sk-proj-", WORD, 48),
        ("openai-service-account", "sk-svcacct-", WORD, 48),
        ("openai-admin", "sk-admin-", WORD, 48),
        ("openai-user", "sk-", WORD, 16),
        ("openai-session", "sess-", ALNUM, 40),
    ),
    *_by_prefix(
        "Anthropic",
        "https://docs.anthropic.com/en/api/overview",
        ("anthropic-api", "sk-ant-api03-", WORD, 93),
        ("anthropic-admin", "sk-ant-admin01-", WORD, 93),
        ("anthropic-oauth", "sk-ant-oat01-", WORD, 86),
        ("anthropic-refresh", "sk-ant-ort01-", WORD, 86),
        ("anthropic-session", "sk-ant-sid01-", WORD, 86),
    ),
    *_by_prefix(
        "OpenRouter",
        "https://openrouter.ai/docs/api-reference/authentication",
        ("openrouter-api", "sk-or-v1-", WORD, 64),
    ),
    *_by_prefix("DeepSeek", "https://api-docs.deepseek.com/", ("deepseek-api", "sk-", WORD, 32)),
    *_by_prefix(
        "Langfuse",
        "https://langfuse.com/docs/api",
        ("langfuse-secret", "sk-lf-", WORD, 36),
        ("langfuse-public", "pk-lf-", UUID, 36),
    ),
    *_by_prefix(
        "Groq", "https://console.groq.com/docs/quickstart", ("groq-api", "gsk_", ALNUM, 52)
    ),
    *_by_prefix(
        "Hugging Face",
        "https://huggingface.co/docs/hub/security-tokens",
        ("huggingface-user", "hf_", ALNUM, 34),
        ("huggingface-organisation", "api_org_", ALNUM, 34),
    ),
    *_by_prefix(
        "Replicate",
        "https://replicate.com/docs/topics/security/api-tokens",
        ("replicate-api", "r8_", WORD, 37),
    ),
    *_by_prefix(
        "Perplexity",
        "https://docs.perplexity.ai/getting-started/quickstart",
        ("perplexity-api", "pplx-", ALNUM, 48),
    ),
    *_by_prefix("xAI", "https://docs.x.ai/docs/overview", ("xai-api", "xai-", SNAKE, 80)),
    *_by_prefix(
        "Together",
        "https://docs.together.ai/docs/quickstart",
        ("together-api", "tgp_v1_", WORD, 40),
    ),
    *_by_prefix(
        "Fireworks",
        "https://docs.fireworks.ai/getting-started/quickstart",
        ("fireworks-api", "fw_", ALNUM, 22, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Cerebras",
        "https://inference-docs.cerebras.ai/quickstart",
        ("cerebras-api", "csk-", LOWER, 40),
    ),
    *_by_prefix("NVIDIA", "https://docs.api.nvidia.com/", ("nvidia-api", "nvapi-", WORD, 60)),
    *_by_prefix(
        "LangSmith",
        "https://docs.smith.langchain.com/administration/how_to_guides/organization_management/create_account_api_key",
        ("langsmith-personal", "lsv2_pt_", r"a-f0-9_", 40),
        ("langsmith-service", "lsv2_sk_", r"a-f0-9_", 40),
        ("langsmith-legacy", "ls__", HEX, 32),
    ),
    *_by_prefix(
        "Pinecone",
        "https://docs.pinecone.io/guides/projects/manage-api-keys",
        ("pinecone-api", "pcsk_", SNAKE, 60),
    ),
    *_by_prefix(
        "ElevenLabs",
        "https://elevenlabs.io/docs/api-reference/authentication",
        ("elevenlabs-api", "sk_", HEX, 48, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Weights & Biases", "https://docs.wandb.ai/", ("wandb-api", "wandb_v1_", SNAKE, 40)
    ),
    *_by_prefix("E2B", "https://e2b.dev/docs", ("e2b-api", "e2b_", HEX, 40)),
    *_by_prefix(
        "Tavily",
        "https://docs.tavily.com/documentation/quickstart",
        ("tavily-development", "tvly-", WORD, 32),
    ),
    *_by_prefix(
        "Firecrawl",
        "https://docs.firecrawl.dev/introduction",
        ("firecrawl-api", "fc-", HEX, 32, _FULL_LENGTH),
    ),
    *_by_prefix("Jina AI", "https://jina.ai/api-dashboard/", ("jina-api", "jina_", SNAKE, 60)),
    *_by_prefix(
        "Voyage AI",
        "https://docs.voyageai.com/docs/api-key-and-installation",
        ("voyage-api", "pa-", WORD, 43, _FULL_LENGTH),
        ("voyage-atlas", "al-", WORD, 43, _FULL_LENGTH),
    ),
    *_by_prefix(
        "LlamaCloud",
        "https://docs.cloud.llamaindex.ai/api_key",
        ("llamacloud-api", "llx-", ALNUM, 48),
    ),
    *_by_prefix(
        "RunPod", "https://docs.runpod.io/get-started/api-keys", ("runpod-api", "rpa_", UPPER, 40)
    ),
    *_by_prefix(
        "Modal",
        "https://modal.com/docs/reference/modal.config",
        ("modal-token-secret", "as-", ALNUM, 22, _FULL_LENGTH),
        ("modal-token-id", "ak-", ALNUM, 22, _FULL_LENGTH),
    ),
    *_by_prefix(
        "Friendli",
        "https://friendli.ai/docs/guides/personal_access_tokens",
        ("friendli-personal", "flp_", ALNUM, 40),
    ),
    *_by_prefix(
        "Anyscale",
        "https://docs.anyscale.com/",
        ("anyscale-user", "esecret_", LOWER, 26),
        ("anyscale-service", "aph0_", ALNUM, 40),
    ),
    *_by_prefix(
        "Helicone",
        "https://docs.helicone.ai/",
        ("helicone-api", "sk-helicone-", WORD, 20),
        ("helicone-write", "pk-helicone-", WORD, 20),
    ),
    *_by_prefix(
        "Braintrust",
        "https://www.braintrust.dev/docs/reference/api",
        ("braintrust-service", "bt-st-", WORD, 40),
    ),
    *_by_prefix("Mem0", "https://docs.mem0.ai/", ("mem0-api", "m0-", ALNUM, 40, _FULL_LENGTH)),
    *_by_prefix(
        "Cursor",
        "https://docs.cursor.com/en/account/teams/admin-api",
        ("cursor-admin", "key_", HEX, 64, _FULL_LENGTH),
    ),
)

GENERIC: Final = (
    *_by_pattern(
        "crypt",
        "https://man7.org/linux/man-pages/man5/crypt.5.html",
        ("crypt-sha", r"\$[15689](?:\$rounds=[0-9]{1,9})?\$", r"A-Za-z0-9./$", 30),
        ("crypt-bcrypt", r"\$2[abxy]\$[0-9]{2}\$", r"A-Za-z0-9./", 53),
        ("crypt-yescrypt", r"\$(?:y|gy|7)\$", r"A-Za-z0-9./$", 40),
        ("crypt-apache", r"\$apr1\$", r"A-Za-z0-9./$", 24),
    ),
    *_by_pattern(
        "Kerberos",
        "https://hashcat.net/wiki/doku.php?id=example_hashes",
        ("kerberos-hash", r"\$krb5(?:asrep|tgs|pa)\$", r"A-Za-z0-9.@:$*/_\-", 40),
    ),
    *_by_pattern(
        "Argon2",
        "https://github.com/P-H-C/phc-string-format",
        (
            "argon2-hash",
            r"\$argon2(?:id|i|d)\$v=[0-9]{1,3}\$m=[0-9]{1,8},t=[0-9]{1,4},p=[0-9]{1,3}\$",
            r"A-Za-z0-9+/$=",
            30,
        ),
    ),
    *_by_prefix(
        "JSON web token",
        "https://www.rfc-editor.org/rfc/rfc7519",
        ("jwt-in-base64", "ZXlKa", BASE64, 60),
        ("jwt-in-base64-header", "ZXlKb", BASE64, 60),
    ),
    *_by_prefix(
        "PEM",
        "https://www.rfc-editor.org/rfc/rfc7468",
        ("private-key-in-base64", "LS0tLS1CRUdJTi", BASE64, 60),
    ),
    *_by_prefix(
        "PASETO",
        "https://github.com/paseto-standard/paseto-spec",
        ("paseto-local-4", "v4.local.", DOTS, 40),
        ("paseto-local-3", "v3.local.", DOTS, 40),
        ("paseto-local-2", "v2.local.", DOTS, 40),
        ("paseto-public-4", "v4.public.", DOTS, 40),
        ("paseto-public-2", "v2.public.", DOTS, 40),
        ("paserk-secret", "k4.secret.", DOTS, 40),
        ("paserk-local", "k4.local.", DOTS, 40),
    ),
    *_by_prefix(
        "Bitcoin",
        "https://github.com/bitcoin/bips/blob/master/bip-0032.mediawiki",
        ("bitcoin-extended-private", "xprv", ALNUM, 100),
    ),
    *_by_prefix(
        "Nostr",
        "https://github.com/nostr-protocol/nips/blob/master/19.md",
        ("nostr-private", "nsec1", LOWER, 58),
    ),
    *_by_prefix(
        "ASP.NET Core",
        "https://learn.microsoft.com/en-us/aspnet/core/security/data-protection/implementation/authenticated-encryption-details",
        ("aspnet-protected", "CfDJ8", WORD, 80),
    ),
    *_by_prefix(
        "Macaroons",
        "https://research.google/pubs/macaroons-cookies-with-contextual-caveats-for-decentralized-authorization-in-the-cloud/",
        ("macaroon", "MDAx", URL_BASE64, 60, _FULL_LENGTH),
    ),
)

FAMILIES: Final = (
    *FORGES,
    *CLOUDS,
    *PAYMENT,
    *CHAT,
    *BUILDS,
    *REGISTRIES,
    *SECRETS,
    *SERVICES,
    *MODELS,
    *GENERIC,
)


@dataclass(frozen=True, slots=True)
class TokenSuffix:
    """A credential whose fixed part is at its end, or far from its beginning.

    It is one word. Its first characters are always shown, so that not every word must be held back;
    the rest is held until the word ends. `rules` has the number of shown characters.
    """

    id: str
    provider: str
    source: str
    """The provider's page about it."""
    pattern: str
    """A pattern for the whole word."""
    fixed_part: str
    """A pattern for the fixed part, with enough characters around it to be rare."""


_AZURE: Final = "https://github.com/microsoft/security-utilities"
_ANNOTATED: Final = (
    "https://github.com/microsoft/security-utilities/blob/main/docs/CommonAnnotatedSecurityKeys.md"
)

TOKEN_SUFFIXES: Final = (
    TokenSuffix(
        "mailgun-signing",
        "Mailgun",
        "https://documentation.mailgun.com/docs/mailgun/api-reference/authentication/",
        "[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
        "-[0-9a-f]{8}-[0-9a-f]{8}",
    ),
    TokenSuffix(
        "mailchimp-api",
        "Mailchimp",
        "https://mailchimp.com/developer/marketing/guides/quick-start/",
        "[0-9a-f]{32}-us[0-9]{1,2}",
        "[0-9a-f]-us[0-9]",
    ),
    TokenSuffix(
        "newrelic-licence",
        "New Relic",
        "https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/",
        "[0-9a-z]{32,36}[0-9A-F]{0,4}NRAL",
        "NRAL",
    ),
    TokenSuffix(
        "maxmind-licence",
        "MaxMind",
        "https://dev.maxmind.com/license-key/",
        "[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk",
        "_mmk",
    ),
    TokenSuffix(
        "azure-annotated",
        "Azure DevOps, OpenAI and others",
        _ANNOTATED,
        "[A-Za-z0-9]{52}JQQJ9[9DH][A-Za-z0-9+/]{26,28}={0,2}",
        "JQQJ9[9DH]",
    ),
    TokenSuffix(
        "azure-long-key",
        "Azure Cosmos DB, Storage, Batch and API Management",
        _AZURE,
        "[A-Za-z0-9+/]{76}(?:ACDb|APIM|[+]ABa|[+]AMC|[+]ASt)[A-Za-z0-9+/]{5}[AQgw]==",
        "(?:ACDb|APIM|[+]ABa|[+]AMC|[+]ASt)[A-Za-z0-9+/]{5}[AQgw]==",
    ),
    TokenSuffix(
        "azure-key",
        "Azure IoT, Service Bus, Event Hubs and Relay",
        _AZURE,
        "[A-Za-z0-9+/]{33}(?:AIoT|[+]ASb|[+]AEh|[+]ARm)[A-Za-z0-9+/]{5,6}=",
        "(?:AIoT|[+]ASb|[+]AEh|[+]ARm)[A-Za-z0-9+/]{5,6}=",
    ),
    TokenSuffix(
        "azure-functions",
        "Azure Functions",
        _AZURE,
        r"[A-Za-z0-9_\-]{44}AzFu[A-Za-z0-9_\-]{5}[AQgw]==",
        r"AzFu[A-Za-z0-9_\-]{5}[AQgw]==",
    ),
    TokenSuffix(
        "azure-search",
        "Azure AI Search",
        _AZURE,
        "[A-Za-z0-9]{42}AzSe[A-D][A-Za-z0-9]{5}",
        "AzSe[A-D][A-Za-z0-9]{5}",
    ),
    TokenSuffix(
        "azure-registry",
        "Azure Container Registry",
        _AZURE,
        "[A-Za-z0-9+/]{42}[+]ACR[A-D][A-Za-z0-9+/]{5}",
        "[+]ACR[A-D][A-Za-z0-9+/]{5}",
    ),
    TokenSuffix(
        "azure-cache",
        "Azure Cache for Redis",
        _AZURE,
        "[A-Za-z0-9]{33}AzCa[A-P][A-Za-z0-9]{5}=",
        "AzCa[A-P][A-Za-z0-9]{5}=",
    ),
)
