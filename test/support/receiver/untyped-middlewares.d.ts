declare module 'compression' {
  import type { RequestHandler } from 'express'
  export default function compression(options?: object): RequestHandler
}
declare module 'cookie-session' {
  import type { RequestHandler } from 'express'
  export default function cookieSession(options: object): RequestHandler
}
declare module 'express-session' {
  import type { RequestHandler } from 'express'
  export default function session(options: object): RequestHandler
}
declare module 'morgan' {
  import type { RequestHandler } from 'express'
  export default function morgan(format: string, options: object): RequestHandler
}
declare module 'on-headers' {
  import type { ServerResponse } from 'node:http'
  export default function onHeaders(
    response: ServerResponse,
    listener: (this: ServerResponse) => void,
  ): void
}
declare module 'etag' {
  export default function etag(entity: Buffer | string): string
}
declare module 'response-time' {
  import type { RequestHandler } from 'express'
  export default function responseTime(): RequestHandler
}
