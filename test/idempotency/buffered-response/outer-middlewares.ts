import compression from 'compression'
import type { RequestHandler } from 'express'
import onHeaders from 'on-headers'

/** Compresses whatever is sent to whoever accepts it. */
export const compress: RequestHandler = compression({ threshold: 0, filter: () => true })

export const atTheLastMoment =
  (name: string, value: string): RequestHandler =>
  (_req, res, next) => {
    onHeaders(res, () => res.setHeader(name, value))
    next()
  }

/** Ends with a line of its own, written by way of `res.write`. */
export const signing: RequestHandler = (_req, res, next) => {
  const { end } = res
  res.end = ((chunk?: Buffer | string) => {
    if (!res.headersSent) res.removeHeader('Content-Length')
    if (!res.headersSent) res.setHeader('Transfer-Encoding', 'chunked')
    if (chunk) res.write(chunk)
    res.write(' -- signed')
    return Reflect.apply(end, res, [])
  }) as typeof res.end
  onHeaders(res, () => {
    res.removeHeader('Content-Length')
    res.setHeader('Transfer-Encoding', 'chunked')
  })
  next()
}

/** Ends later, by way of the response. */
export const endingLater: RequestHandler = (_req, res, next) => {
  const { end } = res
  res.end = ((chunk?: Buffer | string) => {
    setTimeout(() => {
      if (chunk) res.write(chunk)
      res.write(' -- later')
      Reflect.apply(end, res, [])
    }, 5)
    return res
  }) as typeof res.end
  onHeaders(res, () => res.removeHeader('Content-Length'))
  next()
}
