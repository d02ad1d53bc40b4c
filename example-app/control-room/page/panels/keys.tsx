import { Panel } from '../components/panel.js'

export function KeysPanel() {
  return (
    <Panel id="keys" title="Keys" about="">
      {null}
    </Panel>
  )
}
