import type { CallOrder } from '../../protocol.js'
import { Choice, Field, Option } from '../components/field.js'
import { room } from '../state.js'
import { change, changeMethod, draft } from './draft.js'
import { HostileTokenPicker } from './hostile-token-picker.js'

const PERMISSIONS = ['orders:read', 'orders:write', 'orders:delete']

/** What the call is made of. */
export function CallForm() {
  const { caller, audience, method, isTokenReused, idempotencyKey, body } = draft.value
  return (
    <div class="call-form">
      <ReceiverChoice />
      <Choice
        label="Request"
        value={method}
        options={[
          ['GET', 'GET, a read'],
          ['POST', 'POST, a write'],
        ]}
        onChoose={changeMethod}
      />
      <Field label="Caller" hint="sub of the token. Approved are billing and, to read, reporting.">
        <input
          type="text"
          value={caller}
          spellcheck={false}
          autocomplete="off"
          onInput={({ currentTarget }) => change({ caller: currentTarget.value })}
        />
      </Field>
      <Field label="Audience" hint="aud of the token. The receivers are orders.">
        <input
          type="text"
          value={audience}
          spellcheck={false}
          autocomplete="off"
          onInput={({ currentTarget }) => change({ audience: currentTarget.value })}
        />
      </Field>
      <div class="wide stack">
        <Permissions />
        <Choice
          label="Token"
          value={isTokenReused ? 'again' : 'fresh'}
          options={[
            ['fresh', 'a fresh one'],
            ['again', 'the caller’s last one again'],
          ]}
          onChoose={(token) => change({ isTokenReused: token === 'again' })}
        />
      </div>
      {method === 'POST' && (
        <div class="wide stack">
          <WriteChoices idempotencyKey={idempotencyKey} body={body} />
        </div>
      )}
      <div class="wide">
        <HostileTokenPicker />
      </div>
    </div>
  )
}

function ReceiverChoice() {
  const killed = (name: string) =>
    room.value?.receivers.find((each) => each.name === name)?.phase === 'killed'
  const text = (name: string) => (killed(name) ? `${name} (killed)` : name)
  return (
    <Choice
      label="Receiver"
      value={draft.value.receiver}
      options={[
        ['orders-1', text('orders-1')],
        ['orders-2', text('orders-2')],
      ]}
      onChoose={(receiver) => change({ receiver })}
    />
  )
}

function Permissions() {
  const { permissions } = draft.value
  function toggle(permission: string): void {
    const others = permissions.filter((each) => each !== permission)
    change({
      permissions: others.length < permissions.length ? others : [...permissions, permission],
    })
  }
  return (
    <fieldset class="choice">
      <legend>Permissions in the token</legend>
      <div class="choice-options">
        {PERMISSIONS.map((permission) => (
          <Option
            key={permission}
            type="checkbox"
            name="permission"
            isChosen={permissions.includes(permission)}
            onChoose={() => toggle(permission)}
          >
            <code>{permission}</code>
          </Option>
        ))}
      </div>
    </fieldset>
  )
}

function WriteChoices({ idempotencyKey, body }: Pick<CallOrder, 'idempotencyKey' | 'body'>) {
  return (
    <>
      <Choice
        label="Idempotency key"
        value={idempotencyKey}
        options={[
          ['new', 'a new one'],
          ['same', 'that of the last write'],
          ['none', 'none'],
        ]}
        onChoose={(key) => change({ idempotencyKey: key })}
      />
      <Choice
        label="Body"
        value={body}
        options={[
          ['usual', 'the usual one'],
          ['another', 'another one'],
        ]}
        onChoose={(chosen) => change({ body: chosen })}
      />
    </>
  )
}
