import { createGzip } from 'node:zlib'
import type { RequestHandler, Response } from 'express'

/** What `compression` does: waits for the head, then writes through a stream of its own. */
export const compress: RequestHandler = (_req, res, next) => {
  const { write, end, on } = res
  const listeners: [string, () => void][] = []
  let gzip: ReturnType<typeof createGzip> | undefined
  const begin = (): void => {
    res.setHeader('Content-Encoding', 'gzip')
    res.removeHeader('Content-Length')
    gzip = createGzip()
    for (const [name, listener] of listeners) gzip.on(name, listener)
    gzip.on('data', (chunk) => {
      if (Reflect.apply(write, res, [chunk]) === false) gzip?.pause()
    })
    gzip.on('end', () => Reflect.apply(end, res, []))
    Reflect.apply(on, res, ['drain', () => gzip?.resume()])
  }
  onHead(res, begin)
  res.on = ((name: string, listener: () => void) => {
    if (name !== 'drain') return Reflect.apply(on, res, [name, listener])
    if (gzip) gzip.on(name, listener)
    else listeners.push([name, listener])
    return res
  }) as typeof res.on
  res.write = ((chunk: Buffer | string, ...rest: []) => {
    if (!res.headersSent) res.writeHead(res.statusCode)
    return gzip ? gzip.write(chunk, ...rest) : Reflect.apply(write, res, [chunk, ...rest])
  }) as typeof res.write
  res.end = ((chunk?: Buffer | string) => {
    if (!res.headersSent) res.writeHead(res.statusCode)
    if (!gzip) return Reflect.apply(end, res, [chunk])
    if (chunk) gzip.end(chunk)
    else gzip.end()
    return res
  }) as typeof res.end
  next()
}

/** As `on-headers` does it. */
function onHead(res: Response, listener: () => void): void {
  const { writeHead } = res
  let isFired = false
  res.writeHead = ((...args: [number]) => {
    if (!isFired) {
      isFired = true
      listener()
    }
    return Reflect.apply(writeHead, res, args)
  }) as typeof res.writeHead
}

export const atTheLastMoment =
  (name: string, value: string): RequestHandler =>
  (_req, res, next) => {
    onHead(res, () => res.setHeader(name, value))
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
  onHead(res, () => {
    res.removeHeader('Content-Length')
    res.setHeader('Transfer-Encoding', 'chunked')
  })
  next()
}

/** Measures what a response is ended with, as express-session does. */
export const measuring: RequestHandler = (_req, res, next) => {
  const { end } = res
  res.end = ((chunk?: Buffer | string, ...rest: []) => {
    if (chunk !== undefined && chunk !== null) Buffer.byteLength(chunk)
    return Reflect.apply(end, res, [chunk, ...rest])
  }) as typeof res.end
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
  onHead(res, () => res.removeHeader('Content-Length'))
  next()
}
