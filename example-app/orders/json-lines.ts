import type { Logger } from 'express-service-auth'

/** A log of one JSON object a line, as pino and its like write it. */
export const jsonLines: Logger = {
  info: writerOf('info'),
  warn: writerOf('warn'),
  error: writerOf('error'),
}

function writerOf(level: string) {
  return (event: object, message: string): void => {
    console.log(JSON.stringify({ level, time: new Date().toISOString(), message, ...event }))
  }
}
