import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { RequestHandler, Response } from 'express'
import { afterAll } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'esa-ways-'))
export const FILE = join(folder, 'file.txt')
writeFileSync(FILE, 'line of a file\n'.repeat(5000))
afterAll(() => rmSync(folder, { recursive: true }))

const BYTES = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
const TEXT = 'žluťoučký kůň €'

const INVALID = String.fromCharCode(10)

/** What a handler does to a head, and what it sees of it. */
const HEADS: Record<string, (res: Response) => unknown> = {
  'sets a header behind it': (res) => res.writeHead(200).setHeader('a', '1'),
  'sets headers behind it': (res) => res.writeHead(200).setHeaders(new Map([['a', '1']])),
  'appends to a header behind it': (res) => res.writeHead(200).appendHeader('a', '1'),
  'takes a header off behind it': (res) => res.writeHead(200).removeHeader('a'),
  'writes it twice': (res) => res.writeHead(200).writeHead(201, { a: '1' }),
  'writes it with a status of none': (res) => res.writeHead(99),
  'writes it with a status of text': (res) => res.writeHead('x' as unknown as number),
  'writes it with an invalid value': (res) =>
    res.setHeader('c', '1').writeHead(200, { b: '1', a: INVALID }),
  'writes it with an invalid name': (res) => res.writeHead(200, { 'a b': '1' }),
  'writes it with an invalid message': (res) => res.writeHead(200, INVALID),
  'looks at it': (res) => {
    const headers = { 'X-B': '1' }
    const before = res.headersSent
    res.writeHead(202, 'Taken', headers)
    headers['X-B'] = '2'
    const seen = [before, res.headersSent, res.statusCode, res.statusMessage]
    res.statusCode = 500
    res.statusMessage = 'changed'
    return seen
  },
}

/** Answers with what came of it. */
const telling =
  (act: (res: Response) => unknown): RequestHandler =>
  (_req, res) => {
    const seen: unknown[] = []
    try {
      const value = act(res)
      seen.push(value === res ? 'the response' : value)
    } catch (error) {
      const { name, code } = error as NodeJS.ErrnoException
      seen.push({ name, code })
    }
    seen.push(res.headersSent, res.statusCode, res.statusMessage)
    if (!res.headersSent) res.statusMessage = 'OK'
    res.end(JSON.stringify(seen))
  }

const ABOUT_HEADS = Object.entries(HEADS).map(([what, act]) => [`a head: ${what}`, telling(act)])

/** Every way to send a response that we know of. Each is run bare and behind the key. */
export const WAYS: Record<string, RequestHandler> = {
  ...Object.fromEntries(ABOUT_HEADS),
  json: (_req, res) => void res.status(201).location('/orders/1').json({ id: 1, text: TEXT }),
  'send(text)': (_req, res) => void res.send(TEXT),
  'send(buffer)': (_req, res) => void res.type('application/octet-stream').send(BYTES),
  'send(object), which re-enters send': (_req, res) => void res.send({ re: 'entered' }),
  'send("")': (_req, res) => void res.send(''),
  sendStatus: (_req, res) => void res.sendStatus(202),
  'send with 205': (_req, res) => void res.status(205).send('gone'),
  'a body with 304': (_req, res) => void res.status(304).set('ETag', '"x"').send('none'),
  'a body with 204 by write': (_req, res) => {
    res.statusCode = 204
    res.write('none')
    res.end('none')
  },
  redirect: (_req, res) => void res.redirect(303, '/orders/2'),
  sendFile: (_req, res) => void res.sendFile(FILE),
  download: (_req, res) => void res.download(FILE, 'žluť.txt'),
  'end alone': (_req, res) => void res.end(),
  'end(null)': (_req, res) => void res.end(null),
  'end with a callback only': (_req, res) => void res.end(() => {}),
  'end(Uint8Array)': (_req, res) => void res.end(new Uint8Array(BYTES)),
  'write of empty chunks': (_req, res) => {
    res.write('')
    res.write(Buffer.alloc(0))
    res.end()
  },
  'end("")': (_req, res) => void res.end(''),
  'end(text)': (_req, res) => void res.end(TEXT),
  'end(text, encoding)': (_req, res) => void res.end('deadbeef', 'hex'),
  'end(buffer, encoding)': (_req, res) => {
    const end = res.end as (chunk: Buffer, encoding: string) => void
    end.call(res, BYTES, 'hex')
  },
  'end(a view into a larger buffer)': (_req, res) =>
    void res.end(new Uint8Array(BYTES.buffer, BYTES.byteOffset + 10, 20)),
  'write and end': (_req, res) => {
    res.write('one')
    res.write(BYTES)
    res.end('three')
  },
  'an end that fails, and another': (_req, res) => {
    res.statusCode = 1000
    try {
      res.end('x')
    } catch {
      res.statusCode = 500
      res.end('something went wrong')
    }
  },
  'write in encodings': (_req, res) => {
    res.write('aé', 'latin1')
    res.write('aé', 'utf8')
    res.write('aé', 'utf16le')
    res.write('deadbeef', 'hex')
    res.end('3q2+7w==', 'base64')
  },
  'write with Content-Length': (_req, res) => {
    res.setHeader('Content-Length', 6)
    res.write('one')
    res.end('two')
  },
  'a buffer that is used again': (_req, res) => {
    const buffer = Buffer.from('first!')
    res.write(buffer, () => {
      buffer.write('second')
      res.write(buffer, () => res.end())
    })
  },
  'callbacks of write and end': (_req, res) => {
    const seen: string[] = []
    res.write('a', () => seen.push('write'))
    res.write('b', 'utf8', () => {
      seen.push('write2')
      res.end(`${seen}`, 'utf8', () => seen.push('end'))
    })
  },
  'a pipe': (_req, res) => void createReadStream(FILE).pipe(res),
  'a pipe through gzip': (_req, res) => {
    res.setHeader('Content-Encoding', 'gzip')
    createReadStream(FILE).pipe(createGzip()).pipe(res)
  },
  'stream.pipeline': (_req, res) => void pipeline(createReadStream(FILE), res, () => {}),
  'cork and uncork': (_req, res) => {
    res.cork()
    res.write('a')
    res.write('b')
    res.uncork()
    res.end('c')
  },
  'writeHead(status)': (_req, res) => void res.writeHead(418).end('tea'),
  'writeHead(status as text)': (_req, res) =>
    void res.writeHead('203' as unknown as number).end('x'),
  'writeHead with an object': (_req, res) => {
    res.setHeader('Content-Language', 'replaced')
    res.writeHead(201, { 'content-language': 'cs', Link: ['</a>', '</b>'], 'X-Other': '1' })
    res.end('object')
  },
  'writeHead with a reason and an object': (_req, res) =>
    void res.writeHead(299, 'Very Fine', { 'Content-Language': 'cs' }).end('reason'),
  'writeHead with a flat array': (_req, res) => {
    res.setHeader('Link', 'replaced')
    // Node before 22 takes the last value of a name that is repeated.
    res.writeHead(201, ['Link', '</a>', 'Content-Type', 'text/x'])
    res.end('flat')
  },
  'writeHead, flushHeaders, write': (_req, res) => {
    res.writeHead(202, { ETag: '"y"' })
    res.flushHeaders()
    res.write('later')
    res.end()
  },
  'flushHeaders and end': (_req, res) => {
    res.flushHeaders()
    res.end('flushed')
  },
  'headers that are set twice': (_req, res) => {
    res.append('Link', '</a>')
    res.append('Link', '</b>')
    res.append('Set-Cookie', 'a=1')
    res.append('Set-Cookie', 'b=2')
    res.json({})
  },
  'a header beyond ASCII': (_req, res) => {
    res.setHeader('Content-Location', 'caf\xe9')
    // With a text Node would send its head in the text's encoding.
    res.end(BYTES)
  },
  trailers: (_req, res) => {
    res.setHeader('Trailer', 'X-Sum')
    res.write('with ')
    res.addTrailers({ 'X-Sum': '42' })
    res.end('trailers')
  },
  'without Date and with Connection': (_req, res) => {
    res.sendDate = false
    res.setHeader('Connection', 'close')
    res.end('x')
  },
  'a status message': (_req, res) => {
    res.statusMessage = 'So Be It'
    res.end('x')
  },
  'an error passed to next': (_req, _res, next) => next(plain('oops')),
  'an error with a status and headers': (_req, _res, next) =>
    next(Object.assign(plain('slow down'), { status: 429, headers: { 'Retry-After': '7' } })),
  'an error that is thrown': () => {
    throw Object.assign(plain('thrown'), { status: 418 })
  },
  'next() to nobody': (_req, _res, next) => next(),
  'an end long after': (_req, res) => void setTimeout(() => res.json({ late: true }), 20),
  'ends twice': (_req, res) => {
    res.end('first')
    res.end()
  },
}

/** Its stack, which Express shows, must not differ from one app to the other. */
function plain(message: string): Error {
  return Object.assign(new Error(message), { stack: `Error: ${message}` })
}
