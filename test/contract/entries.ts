import type { RequestListener } from 'node:http'
import express5, { type Express } from 'express'
import {
  type AuthenticateOptions,
  acceptOneOf,
  type MultiIssuerAuth,
  requirePermissions,
  requireSingleUse,
  type ServiceAuth,
  type ServiceIdentity,
} from 'express-service-auth'
import { onTestFinished } from 'vitest'
import { type RawRequest, rawRequest } from '../support/network/raw-exchange.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import { startReceiver } from '../support/receiver/receiver.js'
import { serve } from '../support/receiver/serve.js'
import { recordOutput } from '../support/secret-search/index.js'

type AnyAuth = ServiceAuth | MultiIssuerAuth

/** A server that decides on requests. */
export interface Entrance {
  /** The accepted identities, in order. */
  readonly accepted: readonly ServiceIdentity[]
  /** Sends a request; resolves with the whole answer, except its `Date`. */
  raw(request?: RawRequest): Promise<string>
  /** Sends a request with this value of `Authorization`; resolves as `raw` does. */
  rawWith(authorization: string): Promise<string>
  /** Sends a bearer token; resolves with the status of the answer. */
  status(token: string): Promise<number>
}

/** A way to use a `serviceAuth`, and the guards that its options name. */
export interface Entry {
  readonly entry: string
  open(auth: AnyAuth, options?: AuthenticateOptions): Promise<Entrance>
}

type Mount = (app: Express, auth: AnyAuth) => unknown

const mountItself: Mount = (app, auth) => app.use(auth)

const mountAsChoice: Mount = (app, auth) =>
  app.use(acceptOneOf([{ name: 'service', presented: () => true, verify: auth }]))

const openMiddlewares =
  (express: ExpressModule, mountAuth: Mount): Entry['open'] =>
  async (auth, { permissions = [], singleUse } = {}) => {
    const accepted: ServiceIdentity[] = []
    const [first, ...others] = [permissions].flat()
    const { port } = await startReceiver({
      express,
      mount(app) {
        mountAuth(app, auth)
        if (first !== undefined) app.use(requirePermissions(first, ...others))
        if (singleUse !== undefined) app.use(requireSingleUse({ store: singleUse }))
      },
      handler(request, response) {
        if (request.service !== undefined) accepted.push(request.service)
        response.end()
      },
    })
    return entranceAt(port, accepted)
  }

/** The middlewares on both majors of Express, `acceptOneOf`, and `authenticate` without Express. */
export const ENTRIES: readonly Entry[] = [
  ...EXPRESS_MAJORS.map(({ major, express }) => ({
    entry: major,
    open: openMiddlewares(express, mountItself),
  })),
  { entry: 'acceptOneOf', open: openMiddlewares(express5, mountAsChoice) },
  { entry: 'authenticate', open: openAuthenticate },
]

async function openAuthenticate(auth: AnyAuth, options?: AuthenticateOptions): Promise<Entrance> {
  const accepted: ServiceIdentity[] = []
  const listener: RequestListener = (request, response) => {
    const { method, url } = request
    const asked = auth.authenticate(request, { method, url, ...options })
    const answered = asked.then((answer) => {
      if (answer.outcome === 'accepted') {
        accepted.push(answer.service)
        response.end()
      } else {
        response.writeHead(answer.status, wireHeadersOf(answer))
        response.end(request.method === 'HEAD' ? undefined : answer.body)
      }
    })
    answered.catch((error: unknown) => {
      recordOutput('an error of authenticate', error)
      response.writeHead(FAULT_STATUS).end()
    })
  }
  const { port, close } = await serve(listener)
  onTestFinished(close)
  return entranceAt(port, accepted)
}

function entranceAt(port: number, accepted: readonly ServiceIdentity[]): Entrance {
  const raw = (request?: RawRequest): Promise<string> => rawRequest(port, request)
  const rawWith = (authorization: string): Promise<string> =>
    raw({ headers: [`Authorization: ${authorization}`] })
  return {
    accepted,
    raw,
    rawWith,
    status: async (token) => Number((await rawWith(`Bearer ${token}`)).split(' ', 2)[1]),
  }
}

const SPELLINGS = ['Content-Type', 'Cache-Control', 'WWW-Authenticate', 'Retry-After']

/** Spells and orders the headers as Express does, so that all entries send the same bytes. */
function wireHeadersOf(answer: { headers: Readonly<Record<string, string>>; body: string }) {
  const [type = [], ...others] = Object.entries(answer.headers).map(([name, value]) => [
    SPELLINGS.find((spelling) => spelling.toLowerCase() === name) ?? name,
    value,
  ])
  const length = ['Content-Length', String(Buffer.byteLength(answer.body))]
  return ['X-Powered-By', 'Express', ...type, ...length, ...others.flat()]
}
