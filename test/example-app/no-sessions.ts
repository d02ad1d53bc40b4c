import type { RequestHandler } from 'express'

/** For orders that no user asks for. */
export const noSessions: RequestHandler = (_request, response) => void response.sendStatus(401)
