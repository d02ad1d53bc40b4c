import type { Machine } from './clock.js'
import { signatureOf } from './load.js'
import type { Connection, End, Listener } from './network.js'

export const ISSUER = 'https://api.example.com'

interface SigningKey {
  readonly kid: string
  /** The modulus. Nobody has the private key: see `signatureOf`. */
  readonly n: string
}

/** The same keys in every story: only who has them differs. */
const KEYS: readonly SigningKey[] = [0xd1, 0xd3, 0xd5].map((byte, index) => ({
  kid: `d-${index + 1}`,
  n: Buffer.alloc(256, byte).toString('base64url'),
}))

const jwkOf = (key: SigningKey): object => ({
  ...key,
  kty: 'RSA',
  e: 'AQAB',
  use: 'sig',
  alg: 'RS256',
})

/** The least that a receiver keeps a key set. */
const MAX_AGE_SECONDS = 10
const LIFETIME_SECONDS = 3600

export interface Token {
  readonly text: string
  readonly id: string
  readonly kid: string
  readonly service: string
}

/** The identity core: signs tokens and publishes its keys. */
export class Issuer implements Listener {
  readonly machine: Machine
  isListening = true
  published: SigningKey[] = KEYS.slice(0, 1)
  #tokens = 0

  constructor(machine: Machine) {
    this.machine = machine
  }

  /** Signs with the newest key that is published. */
  token(service: string): Token {
    const { kid, n } = this.published.at(-1) as SigningKey
    const id = `t${++this.#tokens}`
    const now = Math.floor(this.machine.wallMs() / 1000)
    const claims = {
      iss: ISSUER,
      aud: 'orders',
      sub: service,
      source: 'microservice',
      token_type: 'service-access',
      permissions: ['orders:write'],
      jti: id,
      iat: now,
      exp: now + LIFETIME_SECONDS,
    }
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${part({ alg: 'RS256', kid, typ: 'JWT' })}.${part(claims)}`
    return { text: `${signed}.${signatureOf(signed, n)}`, id, kid, service }
  }

  /** Adds a key that was never published. */
  addKey(): string | undefined {
    const next = KEYS[KEYS.indexOf(this.published.at(-1) as SigningKey) + 1]
    if (next !== undefined) this.published.push(next)
    return next?.kid
  }

  /** Removes the oldest key, if there is another. */
  removeKey(): string | undefined {
    return this.published.length > 1 ? this.published.shift()?.kid : undefined
  }

  accept(connection: Connection): End {
    return {
      machine: this.machine,
      onClose: () => connection.close('server'),
      onData: () => {
        const body = JSON.stringify({ keys: this.published.map(jwkOf) })
        connection.send(
          'server',
          `HTTP/1.1 200 OK\r\ncache-control: max-age=${MAX_AGE_SECONDS}\r\n\r\n${body}`,
        )
        connection.close('server')
      },
    }
  }
}
