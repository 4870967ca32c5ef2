// The official TypeScript SDK as a client of telex: one conversation, told as a line of JSON.
//
//     node mcp_client.mjs SDK stdio|http TARGET auto|legacy|VERSION
import { pathToFileURL } from 'node:url';

const [, , sdk, kind, target, mode] = process.argv;
const load = file => import(pathToFileURL(`${sdk}/dist/${file}`).href);
const { Client, StreamableHTTPClientTransport } = await load('index.mjs');
const { StdioClientTransport } = await load('stdio.mjs');

const [command, ...args] = kind === 'stdio' ? JSON.parse(target) : [];
const headers = { authorization: `Bearer ${process.env.TOKEN}` };
const transport = kind === 'stdio'
  ? new StdioClientTransport({ command, args, env: process.env })
  : new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } });
const versionNegotiation = { mode: mode.startsWith('20') ? { pin: mode } : mode };
const client = new Client({ name: 'test', version: '1' }, { versionNegotiation });
await client.connect(transport);

const session = `ts-${kind}-${mode}`;
const call = (name, more) => client.callTool({ name, arguments: { session, ...more } });
const tools = (await client.listTools()).tools.map(tool => tool.name);
await client.callTool({ name: 'telex_open', arguments: { command: ['python3', '-q'], name: session } });
const done = await call('telex_do', { steps: [['type', '6 * 7', '--enter'], ['wait', '42']] });
const screen = await client.readResource({ uri: `telex://session/${session}/screen` });
const failed = await call('telex_see', { since: 'x' });
await call('telex_close', {});
console.log(JSON.stringify({
  version: client.getNegotiatedProtocolVersion(),
  tools,
  done: done.structuredContent,
  screen: screen.contents[0].text,
  failed: failed.isError,
}));
await client.close();
