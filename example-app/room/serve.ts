import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { z } from 'zod'
import { listen } from '../listen.js'
import { ORDER } from './calls.js'
import type { Room } from './room.js'

/** Of every answer. The key is in the address, which no other site may learn. */
const STRICT_HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
}

const KEY_BYTES = 32
const PAGE = fileURLToPath(new URL('./page/', import.meta.url))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * Serves a room's page on the loopback address, to whoever has its address: the key is a part of that. A cookie would be
 * sent to every port of this machine.
 */
export async function serveRoom(room: Room, port: number) {
  const key = randomBytes(KEY_BYTES).toString('base64url')
  const app = express().disable('x-powered-by')
  app.use((_req, res, next) => {
    res.set(STRICT_HEADERS)
    next()
  })
  app.use(ownRequestsOnly)
  const behindKey = express.Router()
  behindKey.use(express.static(PAGE, { cacheControl: false }))
  behindKey.get('/state', (_req, res) => {
    res.json(room.state())
  })
  behindKey.use(express.json({ limit: '16kb' }))
  behindKey.post('/call', async (req, res) => {
    res.json(await room.send(ORDER.parse(req.body)))
  })
  behindKey.post('/do/:action', async (req, res) => {
    const { action = '' } = req.params
    const actions: Readonly<Record<string, () => Promise<object>>> = room.actions
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined
    if (act) res.json(await act())
    else res.status(404).json({ error: 'There is no such button.' })
  })
  app.use('/:key', (req, res, next) => {
    if (timingSafeEqual(digest(String(req.params['key'])), digest(key))) behindKey(req, res, next)
    else res.status(403).send('Not for you.')
  })
  app.use((_req, res) => void res.status(403).send('Not for you.'))
  app.use(tellFault)
  const { url, close } = await listen(app, port)
  return { address: `${url}/${key}/`, close }
}

/**
 * Refuses what is not addressed to this machine, or comes from another site: that cannot read the key, but it can point
 * a name of its own at this machine (DNS rebinding).
 */
const ownRequestsOnly: RequestHandler = (req, res, next) => {
  const { host = '', origin } = req.headers
  const isOwnHost = new RegExp(`^(?:127\\.0\\.0\\.1|localhost):${req.socket.localPort}$`).test(host)
  const isOwnOrigin = origin === undefined ? req.method === 'GET' : origin === `http://${host}`
  const site = req.get('sec-fetch-site') ?? 'same-origin'
  // `none`: a person has typed the address, or followed it from a terminal.
  const isOwnSite = site === 'same-origin' || (site === 'none' && req.method === 'GET')
  if (isOwnHost && isOwnOrigin && isOwnSite) next()
  else res.status(403).send('Not for you.')
}

/** A mistake of the visitor, or a service that does not answer, is told in one sentence; other faults in the terminal. */
const tellFault: ErrorRequestHandler = (error, _req, res, next) => {
  if (res.headersSent) return next(error)
  const isVisitors = error instanceof z.ZodError || error.type?.startsWith('entity.')
  const isTold = error instanceof TypeError || error.name === 'TokenSourceError'
  if (isVisitors) res.status(400).json({ error: 'The request of the page is malformed.' })
  else if (isTold) res.status(503).json({ error: error.message })
  else {
    console.error('room:', error)
    res.status(500).json({ error: 'A fault of our own; the terminal tells more.' })
  }
}
