import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTemporaryFolder, temporaryFolder } from '../temporary-folder.js'
import type { Stage } from './stage.js'

export interface CurlLines {
  /** Commands for a shell, each with what it does. */
  readonly commands: readonly (readonly [title: string, command: string])[]
  /** For what belongs to them; it goes with `close`. */
  readonly directory: string
  close(): Promise<void>
}

/**
 * Commands to paste into a shell. No secret is in an argument, where other users could see it: the
 * API key is in a file for the owner's eyes only, the token comes on standard input.
 */
export async function writeCurlLines(stage: Stage, apiKey: string): Promise<CurlLines> {
  const directory = await temporaryFolder('express-service-auth-')
  const config = join(directory, 'mint.curl')
  await writeFile(config, mintConfig(stage.core.url, apiKey), { mode: 0o600 })
  return {
    commands: curlCommands(stage, config),
    directory,
    close: () => removeTemporaryFolder(directory),
  }
}

function mintConfig(coreUrl: string, apiKey: string): string {
  const quoted = apiKey.replace(/["\\]/g, '\\$&')
  return [
    'silent',
    `url = "${coreUrl}/recipe/jwt"`,
    `header = "api-key: ${quoted}"`,
    'header = "rid: jwt"',
    'header = "content-type: application/json; charset=utf-8"',
    '',
  ].join('\n')
}

function curlCommands(stage: Stage, config: string): CurlLines['commands'] {
  const { core, ordersUrl, billingUrl } = stage
  const name = `try-${randomUUID().slice(0, 8)}`
  const withToken = `printf 'Authorization: Bearer %s' "$(token)" |\n  curl -si -w '\\n' -H @-`
  const json = "-H 'Content-Type: application/json'"
  return [
    [
      'Define a command that prints a token for billing: 300 s, dynamic key, an id of its own',
      `token() {
  printf '{"algorithm":"RS256","useStaticSigningKey":false,"validity":300,"jwksDomain":"%s",
    "payload":{"sub":"billing","aud":"orders","source":"microservice","token_type":"service-access",
    "permissions":["orders:read","orders:write"],"jti":"%s"}}' \\
    ${core.issuer} "$(node -p 'crypto.randomUUID()')" |
    curl -K '${config}' -d @- |
    node -p 'JSON.parse(fs.readFileSync(0)).jwt'
}`,
    ],
    ['Read an order', `${withToken} ${ordersUrl}/orders/o-1`],
    [
      'Create an order; the second time, the stored answer comes back',
      `${withToken} ${json} -H 'Idempotency-Key: "${name}"' \\
    -d '{"item":"lamp","quantity":2}' ${ordersUrl}/orders`,
    ],
    [
      'Let billing ask for the token and create the order',
      `curl -si -w '\\n' -X PUT ${json} \\
  -d '{"item":"desk","quantity":1}' ${billingUrl}/invoices/${name}`,
    ],
    [
      stage.cutNextCommit
        ? 'Order glass, which breaks on its way: nothing is written, and each retry tries again'
        : 'Order glass, which breaks on its way: the second time, nobody knows what became of it',
      `${withToken} ${json} -H 'Idempotency-Key: "${name}-glass"' \\
    -d '{"item":"glass","quantity":1}' ${ordersUrl}/orders`,
    ],
  ]
}
