import { generateKeyPairSync } from 'node:crypto'
import type { Machine } from './clock.js'
import { signatureOf } from './load.js'
import type { Connection, End, Listener } from './network.js'

export const ISSUER = 'https://api.example.com'

interface SigningKey {
  readonly kid: string
  readonly pem: string
  readonly jwk: object
}

/** The same keys in every story: only who has them differs. */
const KEYS: readonly SigningKey[] = ['d-1', 'd-2', 'd-3'].map((kid) => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }
  return { kid, pem: String(publicKey.export({ type: 'spki', format: 'pem' })), jwk }
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
    const { kid, pem } = this.published.at(-1) as SigningKey
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
    return { text: `${signed}.${signatureOf(signed, pem)}`, id, kid, service }
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
        const body = JSON.stringify({ keys: this.published.map(({ jwk }) => jwk) })
        connection.send(
          'server',
          `HTTP/1.1 200 OK\r\ncache-control: max-age=${MAX_AGE_SECONDS}\r\n\r\n${body}`,
        )
        connection.close('server')
      },
    }
  }
}
