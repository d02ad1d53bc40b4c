import { useSignal } from '@preact/signals'
import type { CallResult, ShownToken } from '../../protocol.js'
import { Failure } from '../components/action-button.js'
import { Bytes } from '../components/bytes.js'

/** What was sent. */
export function RequestView({ request }: Pick<CallResult, 'request'>) {
  return (
    <section class="view view-request stack" aria-labelledby="request-view">
      <h3 id="request-view">The request, to {request.receiver}</h3>
      <Bytes label="The request as it was sent" text={request.text} />
      <details>
        <summary>As curl</summary>
        <div class="stack">
          <p class="muted">
            With the token of the stand-in core: valid for five minutes, for one write.
          </p>
          <Bytes label="The request as curl" text={request.curl} />
          <CopyButton text={request.curl} />
        </div>
      </details>
    </section>
  )
}

function CopyButton({ text }: { readonly text: string }) {
  const copied = useSignal('')
  const failure = useSignal<string | undefined>(undefined)
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => {
        copied.value = text
      },
      () => {
        failure.value = 'The browser does not allow it: select the text instead.'
      },
    )
  return (
    <div class="row">
      <button type="button" class="button" onClick={() => void copy()}>
        Copy
      </button>
      <span role="status">{copied.value === text && 'Copied.'}</span>
      <Failure text={failure.value} />
    </div>
  )
}

/** The token of the request, decoded where that is possible. */
export function TokenView({ token }: { readonly token: ShownToken }) {
  const isDecoded = token.header !== undefined || token.payload !== undefined
  return (
    <section class="view view-token stack" aria-labelledby="token-view">
      <h3 id="token-view">The token in it, decoded</h3>
      {token.hostility && (
        <p class="hostility">A hostile token. Why it must be refused: {token.hostility}.</p>
      )}
      {isDecoded ? (
        <div class="token-parts">
          <Part name="Header" value={token.header} />
          <Part name="Payload" value={token.payload} />
        </div>
      ) : (
        <>
          <p>It cannot be decoded. This is what was sent:</p>
          <Bytes label="The Authorization header" text={token.authorization || '(nothing)'} />
        </>
      )}
      <p class="muted">
        Tokens are shown because they are the stand-in core’s own. A real token is a secret, and the
        package never logs one.
      </p>
    </section>
  )
}

function Part({ name, value }: { readonly name: string; readonly value: unknown }) {
  if (value === undefined) return null
  return (
    <div class="stack">
      <h4>{name}</h4>
      <Bytes label={`${name} of the token`} text={JSON.stringify(value, null, 2)} />
    </div>
  )
}
